"""The right to write to a record, which one process has at a time."""

import os
import time
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
LOOKS, PAUSE = 10, 0.02
"""How often somebody who wants a lock that is taken looks again, and after how many seconds."""


@contextmanager
def lock(directory: Path) -> Iterator[IO[bytes]]:
    """The right to write to a directory, which the system takes back when the process ends, however it does; on systems
    that do not, it is a file that names the process and is removed in the end."""
    path = directory / LOCK
    try:
        file = path.open("ab" if fcntl else "xb")
        if fcntl:
            _take(file)
        else:
            file.write(str(os.getpid()).encode())
            file.flush()
    except BlockingIOError:
        file.close()
        raise InUseError(f"the run in {directory} is in use by a living process: wait for it, or end it") from None
    except FileExistsError:
        process = f"the process {path.read_text()}: wait for it, or if it is gone, remove {path}"
        raise InUseError(f"the run in {directory} is in use by {process}") from None
    except OSError as error:
        raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from None
    with file:
        yield file
    if not fcntl:
        path.unlink()


def _take(file: IO[bytes]) -> None:
    """Take a lock, also where somebody who only looks has it for a moment."""
    for look in range(LOOKS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if look == LOOKS - 1:
                raise
            time.sleep(PAUSE)
        else:
            return


def in_use(directory: Path) -> bool:
    """Whether some process writes to a directory now."""
    path = directory / LOCK
    if not fcntl or not path.exists():
        return path.exists()
    try:
        with path.open("rb") as file:  # whoever looks need not be allowed to write
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False
