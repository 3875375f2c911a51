"""What of the paper's tables and figures is wanted: the options that say so, on the command line or in a queue."""

import shlex
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from feddyn.cli.completion import paper_names
from feddyn.errors import InputError, nearest

if TYPE_CHECKING:
    from feddyn.paper.catalogue import Experiment
    from feddyn.paper.trials import Choice

Wanted: TypeAlias = "list[tuple[Experiment, Choice]]"


def chosen(command: Callable[..., Any]) -> Callable[..., Any]:
    """What of a table or figure is wanted, as one argument `choice`."""

    @wraps(command)
    def called(rows: Sequence[str], methods: Sequence[str], **others: Any) -> Any:
        from feddyn.paper.trials import Choice

        names = tuple(method.lower() for method in methods)
        choice = Choice(rows, names, *(others.pop(key) for key in ("rounds", "seeds", "lower")))
        return command(choice=choice, **others)

    options = (
        click.argument("name", required=False, shell_complete=paper_names),
        click.option(
            "--row",
            "rows",
            multiple=True,
            shell_complete=paper_names,
            help="Only this row (mnist-iid-10), or a pattern ('mnist-*'); repeatable.",
        ),
        click.option(
            "--method", "methods", multiple=True, shell_complete=paper_names, help="Only this method; repeatable."
        ),
        click.option("--rounds", type=click.IntRange(min=1), help="At most so many rounds a run, within the paper's."),
        click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Seeds, from 0 on."),
        click.option("--lower", is_flag=True, help="Stop a run at the lower one of its targets."),
    )
    found: Callable[..., Any] = called
    for option in reversed(options):
        found = option(found)
    return found


@click.command("a line of a queue", add_help_option=False)
@chosen
def _line(name: str | None, choice: "Choice") -> "tuple[str | None, Choice]":
    """A NAME and its options, as on the command line."""
    return name, choice


def read_queue(file: Path) -> tuple[Wanted, bytes]:
    """What the lines of a queue ask for, and the lines."""
    from feddyn.paper.catalogue import experiments

    try:
        text = file.read_bytes()
        lines = text.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the queue {file} cannot be read: {error}") from None
    wanted = []
    for number, line in enumerate(lines, 1):
        try:
            if words := shlex.split(line, comments=True):
                name, choice = _line.main(words, standalone_mode=False)
                if name not in experiments():
                    raise InputError(f"{name!r} is not made of single runs; {nearest(str(name), experiments())}")
                choice.jobs(experiments()[name])
                wanted.append((experiments()[name], choice))
        except click.ClickException as error:
            raise InputError(f"{file}, line {number}: {error.format_message()}") from None
        except ValueError as error:  # as InputError is
            raise InputError(f"{file}, line {number}: {error}") from None
    if not wanted:
        raise InputError(f"the queue {file} is empty: write a table's NAME with --row and the like on each line")
    return wanted, text
