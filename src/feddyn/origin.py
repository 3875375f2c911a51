"""Where code comes from: Python, an installed package, feddyn, or one's own file; and errors told with its line."""

import functools
import sys
import sysconfig
import textwrap
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from feddyn.errors import FeddynError

HERE = Path(__file__).resolve().parent
LONGEST = 500
"""Letters of somebody's message that are shown: some print whole tensors."""


def installed(file: Path) -> bool:
    """Whether a file comes with Python or with an installed package."""
    parents = file.resolve().parents
    named = any(parent.name in ("site-packages", "dist-packages") for parent in parents)
    return named or any(place in parents for place in _places())


def of_a_library(part: types.FunctionType | type) -> bool:
    """Whether a function or class comes with Python, with an installed package or with feddyn."""
    root = (part.__module__ or "").partition(".")[0]
    if root in sys.stdlib_module_names or root == "feddyn":
        return True
    file = getattr(sys.modules.get(root), "__file__", None)
    return file is not None and installed(Path(file))


def told(error: BaseException) -> str:
    """An error of somebody's code in one line: what it says and, for code that is not installed, where it happened."""
    words = textwrap.shorten(str(error), LONGEST, placeholder=" ...") or type(error).__name__
    if not isinstance(error, ValueError | TypeError | RuntimeError | MemoryError | OSError | ImportError | SyntaxError):
        words = f"{type(error).__name__}: {words}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_file() and HERE not in file.resolve().parents and not installed(file):
            return f"{words} ({file.name}, line {frame.lineno})"
    return words


@contextmanager
def telling(where: str, kind: type[FeddynError] = FeddynError) -> Iterator[None]:
    """What somebody's code raises inside as an error of this kind: one sentence, which begins with where it was."""
    try:
        yield
    except (FeddynError, MemoryError):
        raise
    except Exception as error:
        raise kind(f"{where}: {told(error)}") from error


@functools.cache
def _places() -> tuple[Path, ...]:
    return tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))
