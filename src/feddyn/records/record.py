"""The record of a run: a directory that says everything about it, and that nothing ever overwrites.

setting.toml        complete: it alone repeats the run
code/               the source files outside of feddyn that the setting names, if it does
rounds.jsonl        a line a round; the same bits for equal settings
timings.jsonl       everything that differs between two equal runs
summary.json        how it ended
models.safetensors  the three flat vectors after the last round
devices.json        if it was asked for, the last figures of the server's model on each device's own samples
checkpoint/         while it goes on: all that is needed to go on after a crash
lock                held by the process that writes here
"""

import hashlib
import json
import os
import platform
import re
import time
import tomllib
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, TypeAlias

import tomli_w
from safetensors import SafetensorError, deserialize

from feddyn.errors import FeddynError, InputError
from feddyn.records.files import refuse_links, write_code, write_whole
from feddyn.records.lines import read_rounds, strictly, table, text

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

Setting: TypeAlias = dict[str, Any]
Line: TypeAlias = dict[str, Any]


class Status(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    FINISHED = "finished"
    REACHED = "target reached"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"

    @property
    def complete(self) -> bool:
        """Whether all that was asked for is done."""
        return self in (Status.FINISHED, Status.REACHED)

    @property
    def ended(self) -> bool:
        """Whether it cannot go on."""
        return self.complete or self is Status.DIVERGED


HEADING = "# feddyn run "
"""Begins the first line of a setting.toml; then comes the setting's key."""
LOCK = "lock" if fcntl else "lock.pid"
LEFTOVERS = (LOCK, ".setting.toml.part")
"""What a process that was killed before it began leaves behind."""


def key(setting: Mapping[str, Any]) -> str:
    """Sixteen digits that stand for a setting; every field of it counts. `stack` was once called `cohort`, and runs of
    that time keep their keys."""
    fields = {"cohort" if name == "stack" else name: value for name, value in setting.items()}
    return hashlib.sha256(json.dumps(fields, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


def claim(directory: Path) -> Path:
    """Make a new directory for a record; one that is in use is refused."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(file.name not in LEFTOVERS for file in directory.iterdir()):
            raise InputError(f"the output directory {directory} is in use: choose another one, or remove it yourself")
        if not os.access(directory, os.W_OK):
            raise PermissionError(13, "it is read-only")
    except OSError as error:
        raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from error
    return directory


class Record:
    """Writes a run down while it goes on. While it is open, no other process can open it."""

    def __init__(self, directory: Path, setting: Setting, code: Mapping[str, bytes] | None = None):
        """Start a record, in a new directory; `code` has the source files that the setting names."""
        self._lock_up(claim(directory))
        try:
            text = f"{HEADING}{key(setting)}\n{tomli_w.dumps(setting)}"
            write_whole(directory / "setting.toml", [text.encode()])
            write_code(directory, code or {})
        except OSError as error:
            raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from None
        self._open("started")

    @classmethod
    def resume(cls, directory: Path, setting: Setting) -> "Record":
        """Open the record of a run that has begun; `cut` says from where on it is written again."""
        record = cls.__new__(cls)
        record._lock_up(directory)
        _require_same(directory, setting)
        record._open("resumed")
        return record

    def _lock_up(self, directory: Path) -> None:
        refuse_links(directory)
        self.directory = directory
        self._files = ExitStack()
        weakref.finalize(self, self._files.close)  # whatever happens, nobody is locked out by who is gone
        self.lock = self._files.enter_context(_lock(directory))

    def _open(self, word: str) -> None:
        try:
            self._rounds = self._files.enter_context((self.directory / "rounds.jsonl").open("ab"))
            timings = (self.directory / "timings.jsonl").open("a", encoding="utf-8")
            self._timings = self._files.enter_context(timings)
        except OSError as error:
            raise InputError(f"the record in {self.directory} cannot be written to: {error.strerror}") from None
        self._clock = time.perf_counter()
        self._time(
            {
                word: time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "machine": platform.platform(),
                "python": platform.python_version(),
                "torch": version("torch"),
            }
        )

    def cut(self, recorded: int, rounds: int) -> list[Line]:
        """Forget all behind the first `recorded` bytes, which a checkpoint after so many rounds does not know of; the
        lines before it. The last round may have been interrupted before its line."""
        path = self.directory / "rounds.jsonl"
        known = path.read_bytes()[:recorded]
        if len(known) < recorded:
            raise FeddynError(
                f"{path} has lost lines that the checkpoint counts on: restore it, or start the run again"
            )
        if (known and not known.endswith(b"\n")) or not 0 <= rounds - known.count(b"\n") <= 1:
            raise FeddynError(f"{path} has not the {rounds} lines that the checkpoint counts on: start the run again")
        os.truncate(path, recorded)
        return read_rounds(path)

    def line(self, line: Line) -> None:
        """Add a round."""
        now = time.perf_counter()
        try:
            self._rounds.write((json.dumps(line, allow_nan=False) + "\n").encode())
            self._rounds.flush()
            self._time({"round": line["round"], "seconds": round(now - self._clock, 6)})
        except OSError as error:
            where = f"{self.directory} ({error.strerror})"
            raise FeddynError(f"round {line['round']} cannot be written to {where}; all before it are kept") from None
        self._clock = now

    def recorded(self) -> int:
        """How many bytes of rounds there are, all of them safely on disk."""
        os.fsync(self._rounds.fileno())
        return self._rounds.tell()

    def close(self, summary: Mapping[str, Any], models: bytes, devices: Mapping[str, Sequence[Any]]) -> None:
        """Write down how the run ended, its models, which are a safetensors file, and if there are any the columns of
        the devices' figures."""
        try:
            self.recorded()
            write_whole(self.directory / "models.safetensors", [models])
            if devices:
                write_whole(self.directory / "devices.json", [json.dumps(devices, allow_nan=False).encode()])
            text = json.dumps(summary, indent=2, allow_nan=False) + "\n"
            write_whole(self.directory / "summary.json", [text.encode()])
        except OSError as error:
            raise FeddynError(f"the end of the run cannot be written to {self.directory}: {error.strerror}") from None
        finally:
            self.release()

    def release(self) -> None:
        """Close all files, and let others write here."""
        with suppress(OSError):  # a full disk was reported when a line did not fit
            self._files.close()

    def _time(self, line: Line) -> None:
        self._timings.write(json.dumps(line) + "\n")
        self._timings.flush()


def ended(directory: Path) -> Mapping[str, Any] | None:
    """The summary of a run that went to its end, or diverged; None for one that can go on."""
    try:
        summary = table(strictly((directory / "summary.json").read_bytes()), "it")
        text(summary, "message")
        return summary if Status(text(summary, "status")).ended else None
    except (OSError, ValueError, RecursionError):
        return None


def results(directory: Path, setting: Setting, rounds: int | None) -> tuple[list[Line], bytes]:
    """The lines and the models, as a safetensors file, of a run that has ended after so many rounds."""
    _require_same(directory, setting)
    try:
        lines = read_rounds(directory / "rounds.jsonl")
        if len(lines) != rounds:
            raise ValueError(f"rounds.jsonl has {len(lines)} of {rounds} rounds")
        models = (directory / "models.safetensors").read_bytes()
        deserialize(models)  # type: ignore[no-untyped-call]
        return lines, models
    except (OSError, ValueError, SafetensorError) as error:
        raise FeddynError(f"the record in {directory} is damaged: {error}") from None


def _require_same(directory: Path, setting: Setting) -> None:
    try:
        found = tomllib.loads((directory / "setting.toml").read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"there is no record of a run in {directory}: setting.toml: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{directory / 'setting.toml'} is damaged: {error}") from None
    require_unchanged(directory, found)
    if key(found) != key(setting):
        raise InputError(
            f"the run in {directory} has another setting ({key(found)}) than the one to go on with ({key(setting)}): "
            "take another directory"
        )


def require_unchanged(directory: Path, setting: Mapping[str, Any]) -> None:
    """Refuse a record whose setting.toml says something else than when the run was begun, or ended."""
    begun = (directory / "setting.toml").read_text(encoding="utf-8").partition("\n")[0].removeprefix(HEADING)
    try:
        ended = json.loads((directory / "summary.json").read_bytes())["key"]
    except (OSError, ValueError, KeyError, TypeError):
        ended = None
    for other in (ended, begun):
        if isinstance(other, str) and re.fullmatch("[0-9a-f]{16}", other) and other != key(setting):
            raise InputError(
                f"{directory / 'setting.toml'} was changed after the run was begun (it was {other}, and now it is "
                f"{key(setting)}): change it back, or start a run of its own in another directory"
            )


@contextmanager
def _lock(directory: Path) -> Iterator[IO[bytes]]:
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
        raise InputError(f"the run in {directory} is in use by a living process: wait for it, or end it") from None
    except FileExistsError:
        process = f"the process {path.read_text()}: wait for it, or if it is gone, remove {path}"
        raise InputError(f"the run in {directory} is in use by {process}") from None
    except OSError as error:
        raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from None
    with file:
        yield file
    if not fcntl:
        path.unlink()
