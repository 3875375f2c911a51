"""A power failure loses what was not synced but nothing that was saved: the run goes on from there to the same bits."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import feddyn
from tests.runs.test_resume import RECORD, Crash, Faults, arguments, contents
from tests.runs.test_saving import resumed

EVERY = feddyn.CheckpointEvery(rounds=2)


class Disk:
    """What of the files in a directory would survive a power failure.

    A file has the contents of its last sync, nothing if there was none. A new name for it (`replace`) lasts from the
    next sync of its directory on; until then the old one does. Names of new files and directories last, and so does
    every removal.
    """

    def __init__(self, patch: pytest.MonkeyPatch, directory: Path):
        self.directory = directory
        self.synced: dict[int, bytes] = {}
        self.renamed: list[tuple[Path, bytes | None]] = []
        self._fsync, self._replace, self._open = os.fsync, Path.replace, Path.open
        patch.setattr(os, "fsync", self.fsync)
        patch.setattr(Path, "replace", lambda path, target: self.replace(path, target))
        patch.setattr(Path, "open", lambda path, *words, **more: self.open(path, *words, **more))

    def open(self, path: Path, mode: str = "r", *words: Any, **more: Any) -> Any:
        file = self._open(path, mode, *words, **more)
        if mode != "r" and os.fstat(file.fileno()).st_size == 0:
            self.synced.pop(os.fstat(file.fileno()).st_ino, None)  # the number may have been another file's
        return file

    def fsync(self, handle: int) -> None:
        self._fsync(handle)
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_dir():
            self.renamed = [(name, old) for name, old in self.renamed if name.parent != path]
        else:
            self.synced[path.stat().st_ino] = path.read_bytes()

    def replace(self, path: Path, target: Path) -> Path:
        old = self._survives(target) if target.exists() else None
        self.renamed.append((target, old))
        return self._replace(path, target)

    def fail(self) -> None:
        """Leave on disk only what survives."""
        for file in self.directory.rglob("*"):
            if file.is_file():
                file.write_bytes(self._survives(file))
        for name, old in reversed(self.renamed):
            if old is not None:
                name.write_bytes(old)
            else:
                name.unlink(missing_ok=True)

    def _survives(self, file: Path) -> bytes:
        return self.synced.get(file.stat().st_ino, b"")


def interrupted(out: Path, patch: pytest.MonkeyPatch, at: int | None, last: int) -> int:
    """A run whose power fails at a call that changes a file, or after a round; how many calls there were until then."""
    disk, faults, calls = Disk(patch, out), Faults(patch, at), 0
    with suppress(Crash):
        simulation = feddyn.Simulation(feddyn.Plan(**arguments()), out, workers=1, checkpoint=EVERY)
        for line in simulation:
            if line["round"] == last:
                calls, faults.at = faults.calls, 0
                break
        del simulation, line
    patch.undo()
    disk.fail()
    return calls


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # who crashes closes no files
@pytest.mark.parametrize("round", [1, 2, 3, 5, 6])
def test_what_was_saved_survives_a_power_failure(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round: int
) -> None:
    """Saved every two rounds, the run goes on behind the last one that was saved, whatever was written after it."""
    with monkeypatch.context() as patch:
        interrupted(tmp_path / "out", patch, None, round)
    assert resumed(tmp_path / "out") == round - round % 2 + 1
    assert contents(tmp_path / "out") == undisturbed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_power_failure_at_every_call_of_a_saving(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the line of round 4 on to the last file that the checkpoint after it makes superfluous."""
    calls = {}
    for round in (3, 4):
        with monkeypatch.context() as patch:
            calls[round] = interrupted(tmp_path / f"until {round}", patch, None, round)
    assert calls[4] - calls[3] > 15
    for at in range(calls[3] + 1, calls[4] + 1):
        out = tmp_path / str(at)
        with monkeypatch.context() as patch:
            interrupted(out, patch, at, 4)
        feddyn.simulate(**arguments(), out=out, workers=1, checkpoint=EVERY, resume=True)
        assert contents(out) == undisturbed, f"call {at} of {calls[4]}"


def test_a_run_that_is_complete_survives_whole(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power fails when the last file is written: all lines are there, not only the summary that counts them.
    No last checkpoint is kept, whose writing would have saved the lines."""
    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path / "out")
        feddyn.simulate(**arguments(), out=tmp_path / "out", workers=1, checkpoint=feddyn.CheckpointEvery(keep=0))
    disk.fail()
    assert {name: (tmp_path / "out" / name).read_bytes() for name in RECORD} == {
        name: undisturbed[name] for name in RECORD
    }
