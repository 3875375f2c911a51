"""A run's record and checkpoints together, and how a run goes on from them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load, save

from feddyn.algorithms.base import Vector
from feddyn.checks import require_number, require_whole
from feddyn.engine.executors.group import Group
from feddyn.engine.federation import Federation
from feddyn.engine.shield import shielded
from feddyn.errors import FeddynError
from feddyn.records.layout import Line, Setting, Status, ended, key, results
from feddyn.records.writer import Record
from feddyn.runs.checkpoint import Checkpoints, Position
from feddyn.runs.run import Run


@dataclass(frozen=True)
class CheckpointEvery:
    """How often a run is saved: after so many rounds or minutes, whichever comes first."""

    rounds: int | None = None
    minutes: float = 5.0

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_whole("checkpoint", "rounds", self.rounds, 1)
        require_number("checkpoint", "minutes", self.minutes, zero=True)


class Saver:
    """Writes a run down so that it can go on after a crash. Under ranks, the first one writes, and the others send it
    what it needs; all of them call every function."""

    def __init__(
        self, directory: Path, setting: Setting, every: CheckpointEvery, group: Group, code: Mapping[str, bytes]
    ):
        self.directory, self.setting, self.every, self.group, self.code = directory, setting, every, group, code
        self.writes = group.rank == 0
        self.checkpoints = Checkpoints(directory / "checkpoint", key(setting))
        self._saved, self._clock = 0, time.monotonic()
        self._record: Record | None = None

    def ended(self) -> tuple[list[Line], dict[str, Vector], Status, str] | None:
        """What is recorded of a run that needs nothing more; None if it can go on."""

        def read() -> tuple[list[Line], dict[str, Vector], Status, str] | None:
            summary = ended(self.directory) if self.writes else None
            if summary is None:
                return None
            lines, models = results(self.directory, self.setting, summary.get("rounds"))
            return lines, load(models), Status(summary["status"]), summary.get("message", "")

        return self.group.from_first(self.group.guarded(read))

    def open(self, federation: Federation, resume: bool) -> list[Line]:
        """Start the record, or go back to the newest checkpoint; the lines until there."""

        def read() -> tuple[Position | None, list[Line]]:
            if self.writes and resume and (self.directory / "setting.toml").exists():
                self._record = Record.resume(self.directory, self.setting)
                return self._go_back(self._record, federation)
            self._record = Record(self.directory, self.setting, self.code) if self.writes else None
            return None, []

        position, lines = self.group.from_first(self.group.guarded(read))
        self.group.adopt(self.group.from_first(sorted(federation.store.slots)))
        if position:
            if position.round > self.setting["rounds"]:
                raise FeddynError(f"the checkpoint of round {position.round} is not one of this run: start it again")
            federation.restore(position.round, position.totals, position.vectors)
            self._saved = position.round
        return lines

    def _go_back(self, record: Record, federation: Federation) -> tuple[Position | None, list[Line]]:
        try:
            position = self.checkpoints.load(federation.store)
            return position, record.cut(position.recorded, position.round) if position else record.cut(0, 0)
        except BaseException:
            record.release()
            raise

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

    def save(self, federation: Federation) -> None:
        """Write a checkpoint of where the run stands."""
        self.group.bring_home(federation.store)

        def write(record: Record) -> None:
            with shielded():
                vectors = federation.vectors()
                position = Position(federation.rounds, federation.totals, record.recorded(), vectors)
                self.checkpoints.save(position, federation.store)

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
        inputs: Mapping[str, Any],
        devices: Mapping[str, Sequence[Any]],
    ) -> None:
        """Write down how the run ended. One that is not complete is saved before, where there is a federation to save;
        one that is needs its checkpoints no more."""
        if self._record is None:
            return
        complete = run.status.complete
        vectors = {name: vector.detach().cpu().contiguous().clone() for name, vector in run.models.items()}
        try:
            if federation and not complete and self.group.size == 1 and federation.rounds > self._saved:
                self.save(federation)
        finally:
            self._record.close(run.summary, save(vectors), save(run.state_dict()), inputs, devices)
        if complete:
            self.checkpoints.remove()
