"""Writing a record while a run goes on."""

import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import tomli_w

from feddyn.errors import FeddynError, InputError
from feddyn.records.comparison import FILE
from feddyn.records.files import refuse_links, write_code, write_whole
from feddyn.records.layout import (
    CLASSES,
    DEVICES,
    HEADING,
    INPUTS,
    MODELS,
    STATE_DICT,
    Line,
    Setting,
    ended,
    is_record,
    key,
    require_same,
)
from feddyn.records.lines import append_lines, read_rounds
from feddyn.records.lock import LOCK, lock
from feddyn.records.machine import machine

LEFTOVERS = (LOCK, ".setting.toml.part")
"""What a process that was killed before it began leaves behind."""


def claim(directory: Path) -> Path:
    """Make a new directory for a record; one that is in use is refused."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(file.name not in LEFTOVERS for file in directory.iterdir()):
            raise InputError(f"the output directory {directory} {_content(directory)}")
        if not os.access(directory, os.W_OK):
            raise PermissionError(13, "it is read-only")
    except OSError as error:
        raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from error
    return directory


def _content(directory: Path) -> str:
    """What is in a directory that cannot be taken, and what to do about it."""
    if (directory / FILE).exists() or is_record(directory):
        run = "comparison" if (directory / FILE).exists() else "run"
        done = ended(directory)
        if done is None:
            hint = "go on with it (feddyn resume; in Python resume=True)"
            return f"has the record of a {run} already: {hint}, or choose another directory"
        more = "" if done["status"] == "diverged" else ", add rounds to it (feddyn resume)"
        hint = f"choose another directory{more}, or remove it yourself"
        return f"has the record of a {run} that has ended ({done['status']}): {hint}"
    return "is not empty: choose another one, or remove it yourself"


class Record:
    """Writes a run down while it goes on. While it is open, no other process can open it. `extended`: the setting to go
    on with is another one in when the run ends."""

    extended = False

    def __init__(self, directory: Path, setting: Setting, code: Mapping[str, bytes] | None = None):
        """Start a record, in a new directory; `code` has the source files that the setting names."""
        self._lock_up(claim(directory))
        with self._or_release():
            try:
                self._set(setting)
                write_code(directory, code or {})
            except OSError as error:
                raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from None
            self._open()
            self._begin("started")

    @classmethod
    def resume(cls, directory: Path, setting: Setting) -> "Record":
        """Open the record of a run that has begun; `cut` says from where on it is written again."""
        record = cls.__new__(cls)
        record._lock_up(directory)
        with record._or_release():
            record.extended = not require_same(directory, setting)
            record._open()
        return record

    @contextmanager
    def _or_release(self) -> Iterator[None]:
        """Let others write here where it fails: a notebook keeps its last error, and with it this object, alive."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def extend(self, setting: Setting) -> None:
        """Let the run end at another time than it was begun with, or has ended at."""
        (self.directory / "summary.json").unlink(missing_ok=True)
        self._set(setting)

    def _set(self, setting: Setting) -> None:
        text = f"{HEADING}{key(setting)}\n{tomli_w.dumps(setting)}"
        write_whole(self.directory / "setting.toml", [text.encode()])

    def _lock_up(self, directory: Path) -> None:
        refuse_links(directory)
        self.directory = directory
        self._files = ExitStack()
        weakref.finalize(self, self._files.close)  # whatever happens, nobody is locked out by who is gone
        self.lock = self._files.enter_context(lock(directory))

    def _open(self) -> None:
        try:
            self._rounds = self._files.enter_context((self.directory / "rounds.jsonl").open("ab"))
            append_lines(self.directory / "timings.jsonl", [])  # without one that a crash cut off
            timings = (self.directory / "timings.jsonl").open("a", encoding="utf-8")
            self._timings = self._files.enter_context(timings)
        except OSError as error:
            raise self._unwritable(error) from None

    def _begin(self, word: str) -> None:
        """Say when and where rounds are computed from here on."""
        try:
            self._time({word: time.strftime("%Y-%m-%dT%H:%M:%S%z"), **machine()})
        except OSError as error:
            raise self._unwritable(error) from None
        self._clock = time.perf_counter()

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"the record in {self.directory} cannot be written to: {error.strerror}")

    def cut(self, recorded: int, rounds: int) -> list[Line]:
        """Forget all behind the first `recorded` bytes, which a checkpoint after so many rounds does not know of; the
        lines before it. The last round may have been interrupted before its line."""
        path = self.directory / "rounds.jsonl"
        known = path.read_bytes()[:recorded]
        if len(known) < recorded:
            raise FeddynError(f"{path} has lost lines that the checkpoint counts on: restore it, or {self._anew}")
        if (known and not known.endswith(b"\n")) or not 0 <= rounds - known.count(b"\n") <= 1:
            raise FeddynError(f"{path} has not the {rounds} lines that the checkpoint counts on: {self._anew}")
        os.truncate(path, recorded)
        self._begin("resumed")
        return read_rounds(path)

    @property
    def _anew(self) -> str:
        return f"move {self.directory} away to start the run anew"

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

    def close(
        self,
        summary: Mapping[str, Any],
        models: bytes,
        state_dict: bytes,
        inputs: Mapping[str, Any],
        devices: Mapping[str, Sequence[Any]],
        classes: Sequence[Sequence[int]] = (),
    ) -> None:
        """Write down how the run ended, its models as flat vectors, the one that counts by the names of its parameters
        (both are safetensors files), what its inputs were, and if there are any the columns of the devices' figures and
        their samples by class. A device's figure that is NaN, as where it has none, is null in the file."""
        try:
            self.recorded()
            write_whole(self.directory / MODELS, [models])
            write_whole(self.directory / STATE_DICT, [state_dict])
            counted = {"samples": classes} if classes else {}
            known = {name: [None if value != value else value for value in column] for name, column in devices.items()}
            for name, content in ((INPUTS, inputs), (DEVICES, known), (CLASSES, counted)):
                if content:
                    write_whole(self.directory / name, [json.dumps(content, allow_nan=False).encode()])
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
