"""What can go wrong, each in one sentence that says what, where and how to mend it."""

import difflib
from collections.abc import Iterable
from typing import Any


class FeddynError(Exception):
    """Anything that feddyn refuses or stops at; its text is one sentence for the user. Where it ended a run, `run`
    holds all rounds before."""

    run: Any = None


class InputError(FeddynError, ValueError):
    """A setting, an argument or data that cannot be used."""


class DivergenceError(FeddynError, ArithmeticError):
    """Training left the finite numbers; `run` holds all rounds before that one."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a run was simulated; `run` holds all rounds before."""

    def __init__(self, run: Any):
        self.run = run
        super().__init__(f"interrupted after round {len(run.history)}; the run so far is the `run` of this exception")


def nearest(word: str, known: Iterable[str]) -> str:
    """The tail of an error sentence: the nearest known name, or all of them.

    >>> nearest("fedyn", ["feddyn", "fedavg"])
    "did you mean 'feddyn'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
