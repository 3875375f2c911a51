"""The right to write to a record, which one process has at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from feddyn.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]


class InUseError(InputError):
    """Another process writes to the record."""


LOCK = "lock" if fcntl else "lock.pid"


@contextmanager
def lock(directory: Path) -> Iterator[IO[bytes]]:
    """The right to write to a directory, which the system takes back when the process ends, however it does; on systems
    that do not, it is a file that names the process and is removed in the end."""
    path = directory / LOCK
    try:
        file = path.open("ab" if fcntl else "xb")
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            file.write(str(os.getpid()).encode())
            file.flush()
    except BlockingIOError:
        file.close()
        raise InUseError(f"the run in {directory} is in use by a living process: wait for it, or end it") from None
    except FileExistsError:
        process = f"the process {path.read_text()}: wait for it, or if it is gone, remove {path}"
        raise InputError(f"the run in {directory} is in use by {process}") from None
    except OSError as error:
        raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from None
    with file:
        yield file
    if not fcntl:
        path.unlink()


def in_use(directory: Path) -> bool:
    """Whether some process writes to a directory now."""
    if not (directory / LOCK).exists():
        return False
    try:
        with lock(directory):
            return False
    except InputError:
        return True
