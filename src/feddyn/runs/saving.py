"""A run's record and checkpoints together, and how a run goes on from them."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load, save

from feddyn.algorithms.base import Vector
from feddyn.batches import owned
from feddyn.checks import require_number, require_whole
from feddyn.engine.executors.group import Group
from feddyn.engine.federation import Federation
from feddyn.engine.shield import shielded
from feddyn.errors import FeddynError, InputError
from feddyn.records.layout import Line, Setting, Status, ended, is_record, key, past_key, require_same, results
from feddyn.records.reader import read as read_record
from feddyn.records.writer import Record
from feddyn.runs.checkpoint import Checkpoints, Position
from feddyn.runs.run import Run

BEST = "best"


@dataclass(frozen=True)
class CheckpointEvery:
    """How often a run is saved: after so many rounds or minutes, whichever comes first. When it is complete, the last
    checkpoint stays if it is of at most `keep` bytes, so that more rounds can be added."""

    rounds: int | None = None
    minutes: float = 5.0
    keep: int = 100_000_000

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_whole("checkpoint", "rounds", self.rounds, 1)
        require_number("checkpoint", "minutes", self.minutes, zero=True)
        require_whole("checkpoint", "keep", self.keep, 0)


class Ended(NamedTuple):
    """What is recorded of a run that needs nothing more."""

    history: list[Line]
    models: dict[str, Vector]
    status: Status
    message: str
    on_devices: dict[str, list[Any]]
    seconds: float


class Saver:
    """Writes a run down so that it can go on after a crash. Under ranks, the first one writes, and the others send it
    what it needs; all of them call every function. `best` is the best model so far, which is saved too."""

    def __init__(
        self, directory: Path, setting: Setting, every: CheckpointEvery, group: Group, code: Mapping[str, bytes]
    ):
        self.directory, self.setting, self.every, self.group, self.code = directory, setting, every, group, code
        self.writes = group.rank == 0
        self.checkpoints = Checkpoints(directory / "checkpoint", past_key(setting), key(setting))
        self.best: Vector | None = None
        self._saved, self._clock = 0, time.monotonic()
        self._record: Record | None = None
        self._kept = False

    def ended(self) -> Ended | None:
        """What is recorded of a run that needs nothing more; None if it can go on."""

        def read() -> Ended | None:
            summary = ended(self.directory) if self.writes else None
            if summary is None:
                return None
            if not require_same(self.directory, self.setting, summary.get("rounds", 0)):
                if not self.checkpoints.there:
                    raise self._nothing_to_extend()
                return None
            lines, models = results(self.directory, summary.get("rounds"))
            record = read_record(self.directory)
            devices = {name: list(column) for name, column in record.on_devices.items()}
            return Ended(lines, load(models), record.status, record.message, devices, record.seconds)

        return self.group.from_first(self.group.guarded(read))

    def _nothing_to_extend(self) -> InputError:
        return InputError(
            f"the run in {self.directory} is complete and has no whole checkpoint to which rounds could be added "
            "(one of up to 100MB is kept, or of --keep): run its setting.toml with more rounds in another directory"
        )

    def open(self, federation: Federation, resume: bool) -> list[Line]:
        """Start the record, or go back to the newest checkpoint; the lines until there."""

        def read() -> tuple[Position | None, list[Line]]:
            if self.writes and resume and is_record(self.directory):
                self._record = Record.resume(self.directory, self.setting)
                return self._go_back(self._record, federation)
            self._record = Record(self.directory, self.setting, self.code) if self.writes else None
            return None, []

        position, lines = self.group.from_first(self.group.guarded(read))
        self.group.adopt(self.group.from_first(sorted(federation.store.slots)))
        if position:
            if BEST in position.vectors:
                self.best = position.vectors[BEST].to(federation.initial.device)
            federation.restore(position.round, position.totals, position.vectors)
            self._saved = position.round
        return lines

    def _go_back(self, record: Record, federation: Federation) -> tuple[Position | None, list[Line]]:
        try:
            position = self.checkpoints.load(federation.store)
            if position is None and not ended(self.directory):
                self._refuse_to_lose_rounds()
            recorded, done = (position.recorded, position.round) if position else (0, 0)
            if done > self.setting["rounds"] and not record.extended:
                raise FeddynError(f"the checkpoint of round {done} is not one of this run: start it again")
            require_same(self.directory, self.setting, done)
            if record.extended and not position and ended(self.directory):
                raise self._nothing_to_extend()
            lines = record.cut(recorded, done)
            if record.extended:
                record.extend(self.setting)
            return position, lines
        except BaseException:
            record.release()
            raise

    def _refuse_to_lose_rounds(self) -> None:
        """A record with a summary had a checkpoint. Where that is gone, as from a copied record, to start would
        overwrite rounds that nothing can compute again."""
        if (self.directory / "summary.json").exists() and (self.directory / "rounds.jsonl").stat().st_size:
            raise InputError(
                f"the run in {self.directory} has rounds, but no whole checkpoint to go on from: put its folder "
                "checkpoint back, or move it away to compute it anew"
            )

    @property
    def private(self) -> list[int]:
        """Handles that workers must close: the lock is held while any process has the descriptor."""
        return [self._record.lock.fileno()] if self._record else []

    def line(self, line: Line, federation: Federation) -> None:
        """Record a round, and save the run if it is time."""
        self._write(lambda record: record.line(line))
        due = time.monotonic() - self._clock >= 60 * self.every.minutes
        due = due or (self.every.rounds is not None and federation.rounds - self._saved >= self.every.rounds)
        if self.group.from_first(due):
            self.save(federation)

    def conclude(self, federation: Federation) -> None:
        """Keep what is needed to add rounds to a run that is complete, where it is not too much."""
        store, vectors = federation.store, federation.vectors().values()
        devices = int(self.group.total(torch.tensor(len(store.slots))))
        size = devices * store.width * store.dtype.itemsize + sum(vector.nbytes for vector in vectors)
        if size <= self.every.keep:
            with suppress(FeddynError):  # a full disk costs the rounds that may be added, not those that are done
                self.save(federation, last=True)
                self._kept = True

    def save(self, federation: Federation, last: bool = False) -> None:
        """Write a checkpoint of where the run stands; `last`: the only one that is kept when it is complete."""
        self.group.bring_home(federation.store)

        def write(record: Record) -> None:
            with shielded():
                vectors = federation.vectors() | ({} if self.best is None else {BEST: self.best})
                position = Position(federation.rounds, federation.totals, record.recorded(), vectors)
                self.checkpoints.save(position, federation.store, last)

        self._write(write)
        self._saved, self._clock = federation.rounds, time.monotonic()

    def _write(self, what: Callable[[Record], None]) -> None:
        """Write on the rank that does; where it cannot, all stop."""

        def work() -> None:
            if self._record:
                what(self._record)

        self.group.guarded(work)

    def close(
        self,
        federation: Federation | None,
        run: Run,
    ) -> None:
        """Write down how the run ended. One that is not complete is saved before, where there is a federation to save;
        without any checkpoint it is left as if it had been killed. One that is complete needs its checkpoints no more,
        but for what was kept of it."""
        if self._record is None:
            return
        complete = run.status.complete
        vectors = owned(run.models)
        try:
            if federation and not complete and self.group.size == 1 and federation.rounds > self._saved:
                self.save(federation)
        finally:
            if complete or self.checkpoints.there or not run.history:
                written = save(vectors), save(run.state_dict())
                self._record.close(run.summary, *written, run.inputs, run.on_devices, run.classes)
            else:
                self._record.release()
        if complete and not self._kept:
            self.checkpoints.remove()
