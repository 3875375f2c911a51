"""Runs that are interrupted, crash or lose files go on to the same bits.

`python -m tests.runs.test_resume SEED COUNT` kills more of them.
"""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

import feddyn
from feddyn.data.stored import Stored
from feddyn.engine.federation import Federation
from feddyn.records import files
from feddyn.records.lock import lock
from feddyn.runs.checkpoint import _digest
from tests.engine.cases import cases

ROUNDS = 8
LAST = [f"000008.{kind}" for kind in ("devices.safetensors", "json", "server.safetensors")]
"""All that stays of the checkpoints of a run that is complete."""
RECORD = ("setting.toml", "rounds.jsonl", "models.safetensors", "summary.json")


def arguments(name: str = "feddyn one by one") -> dict[str, Any]:
    return {**cases()[name], "rounds": ROUNDS}


def contents(directory: Path) -> dict[str, bytes]:
    """The bytes of a record, and of the last checkpoint, which does not depend on those before it."""
    last = sorted(f"checkpoint/{file.name}" for file in (directory / "checkpoint").iterdir())
    return {name: (directory / name).read_bytes() for name in (*RECORD, *last)}


class Crash(BaseException):
    """The process is gone: nothing that follows is done."""


class Faults:
    """Every call that changes a file counts; the one with this number, and all after it, fail."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int | None):
        self.calls, self.at = 0, at
        for owner, name in ((os, "fsync"), (os, "truncate"), (os, "open"), (Path, "replace"), (Path, "unlink")):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))
        patch.setattr(Path, "open", self._opened(Path.open))
        patch.setattr(Path, "mkdir", self._counted(Path.mkdir))

    def _count(self) -> None:
        self.calls += 1
        if self.at is not None and self.calls >= self.at:
            raise Crash

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **more: Any) -> Any:
            self._count()
            return function(*words, **more)

        return counted

    def _opened(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Files that are opened to be written to, whose every write counts, and writes half of it when it crashes."""

        def opened(path: Path, mode: str = "r", *words: Any, **more: Any) -> Any:
            if mode not in ("xb", "ab", "a"):
                return function(path, mode, *words, **more)
            self._count()
            file = function(path, mode, *words, **more)
            write = file.write

            def half(data: Any) -> Any:
                self.calls += 1
                if self.at is not None and self.calls >= self.at:
                    write(data[: len(data) // 2])
                    file.flush()
                    raise Crash
                return write(data)

            wrapper = _Wrapped(file)
            wrapper.write = half
            return wrapper

        return opened


class _Wrapped:
    """A file with a write of its own."""

    write: Any

    def __init__(self, file: Any):
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> "_Wrapped":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # who crashes closes no files
def test_a_crash_at_every_call_that_changes_a_file(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is saved every two rounds crashes at its first such call, then at its second, ..., and is resumed."""
    every = feddyn.CheckpointEvery(rounds=2)
    with monkeypatch.context() as patch:
        faults = Faults(patch, None)
        feddyn.simulate(**arguments(), out=tmp_path / "counted", workers=1, checkpoint=every)
    assert contents(tmp_path / "counted") == undisturbed
    assert faults.calls > 60
    for at in range(1, faults.calls + 1):
        out = tmp_path / str(at)
        with monkeypatch.context() as patch:
            Faults(patch, at)
            with suppress(Crash):
                feddyn.simulate(**arguments(), out=out, workers=1, checkpoint=every)
        feddyn.simulate(**arguments(), out=out, workers=1, checkpoint=every, resume=True)
        assert contents(out) == undisturbed, f"call {at} of {faults.calls}"


@pytest.mark.parametrize("name", list(cases()))
def test_every_kind_of_run_resumes_to_the_same_bits_with_other_workers(name: str, tmp_path: Path) -> None:
    whole = feddyn.simulate(**arguments(name), out=tmp_path / "whole", workers=1)
    plan_arguments = arguments(name)
    memory = plan_arguments.pop("state_memory", None)
    plan = feddyn.Plan(**plan_arguments)
    for stop, workers in ((1, 2), (4, 1), (6, 3)):
        simulation = feddyn.Simulation(
            plan,
            tmp_path / "parts",
            workers=workers,
            state_memory=memory,
            resume=True,
            checkpoint=feddyn.CheckpointEvery(rounds=3),
        )
        for line in simulation:
            if line["round"] == stop:
                break
        del simulation, line
    rest = feddyn.simulate(**arguments(name), out=tmp_path / "parts", resume=True, workers=2)
    assert rest.history == whole.history
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    again = feddyn.simulate(**arguments(name), out=tmp_path / "parts", resume=True)
    assert again.history == whole.history
    assert all(torch.equal(again.models[k], whole.models[k]) for k in whole.models)
    assert again.on_devices == whole.on_devices
    assert again.seconds > 0


@pytest.mark.parametrize("name", list(cases()))
def test_a_run_that_is_interrupted_between_a_round_and_its_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C while it evaluates: the line is written when the run goes on, with all that it would have had."""
    whole = feddyn.simulate(**arguments(name), out=tmp_path / "whole", workers=1)
    evaluate, calls = Federation.evaluate, count()

    def interrupted(self: Federation) -> Any:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return evaluate(self)

    with monkeypatch.context() as patch:
        patch.setattr(Federation, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            feddyn.simulate(**arguments(name), out=tmp_path / "part", workers=1)
    rest = feddyn.simulate(**arguments(name), out=tmp_path / "part", resume=True, workers=1)
    assert rest.history == whole.history
    assert (tmp_path / "part" / "rounds.jsonl").read_bytes() == (tmp_path / "whole" / "rounds.jsonl").read_bytes()


def _interrupted(out: Path, rounds: int = 5) -> None:
    plan = feddyn.Plan(**arguments())
    for line in feddyn.Simulation(plan, out, workers=1, checkpoint=feddyn.CheckpointEvery(rounds=2)):
        if line["round"] == rounds:
            break


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    undisturbed: dict[str, bytes], tmp_path: Path, damage: str
) -> None:
    """Each file of the newest checkpoint in turn; with both checkpoints damaged, the rounds that are there are kept."""
    _interrupted(tmp_path / "first")
    newest = sorted(file.name for file in (tmp_path / "first" / "checkpoint").glob("000005.*"))
    assert len(newest) == 3
    for names in ([newest[0]], [newest[1]], [newest[2]], [newest[0], "000004.json"]):
        out = tmp_path / "-".join(names)
        subprocess.run(["cp", "-r", tmp_path / "first", out], check=True)
        for name in names:
            file = out / "checkpoint" / name
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            if damage == "delete":
                file.unlink()
            else:
                file.write_bytes(data if damage == "flip" else data[: len(data) // 2])
        if len(names) == 1:
            feddyn.simulate(**arguments(), out=out, resume=True)
            assert contents(out) == undisturbed
        else:
            with pytest.raises(feddyn.InputError, match="has rounds, but no whole checkpoint to go on from"):
                feddyn.simulate(**arguments(), out=out, resume=True)
            assert (out / "rounds.jsonl").read_bytes() == (tmp_path / "first" / "rounds.jsonl").read_bytes()
            (out / "summary.json").unlink()  # as after a kill: nobody knows that it ended in good order
            feddyn.simulate(**arguments(), out=out, resume=True)
            assert contents(out) == undisturbed


def test_a_run_whose_first_checkpoint_could_not_be_written_begins_anew(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, or under ranks, where none is written at an interrupt: there is nothing to put back."""
    out = tmp_path / "out"
    simulation = feddyn.Simulation(feddyn.Plan(**arguments()), out, workers=1)
    with monkeypatch.context() as patch:
        patch.setattr("feddyn.runs.checkpoint.write_whole", _full)
        rounds = iter(simulation)
        next(rounds)
        next(rounds)
        with pytest.raises(feddyn.FeddynError, match="No space left"):
            rounds.close()
    assert (out / "rounds.jsonl").read_text().count("\n") == 2
    feddyn.simulate(**arguments(), out=out, resume=True)
    assert contents(out) == undisturbed


def test_after_a_damaged_checkpoint_the_next_ones_are_whole(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    """The checkpoint of round 5 is damaged; the run goes on from round 4 and is stopped when round 5 has been saved
    again, and after round 6: what was written in the place of the damaged one must not be taken for it."""
    out = tmp_path / "out"
    _interrupted(out)
    file = out / "checkpoint" / "000005.json"
    file.write_bytes(file.read_bytes()[:-9])
    for stop in (5, 6):
        simulation = feddyn.Simulation(
            feddyn.Plan(**arguments()), out, resume=True, checkpoint=feddyn.CheckpointEvery(rounds=1)
        )
        for line in simulation:
            if line["round"] == stop:
                break
        assert simulation.passed_over == (["000005.json"] if stop == 5 else [])
        del simulation, line
        assert (out / "checkpoint" / f"{stop:06d}.json").exists()
    feddyn.simulate(**arguments(), out=out, resume=True)
    assert contents(out) == undisturbed


def test_device_states_are_written_anew_when_most_of_them_are_old(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no room for old ones every checkpoint has all devices; one of those that fails loses none of them."""
    out, rows = tmp_path / "out", "feddyn.runs.checkpoint.ROWS"
    simulation = feddyn.Simulation(
        feddyn.Plan(**arguments()), out, workers=1, checkpoint=feddyn.CheckpointEvery(rounds=100)
    )
    saver = simulation._saver
    assert saver is not None
    for line in simulation:
        if line["round"] in (1, 2, 3):
            saver.save(simulation.federation)
            assert len(saver.checkpoints._segments) == line["round"]
        if line["round"] == 5:
            with monkeypatch.context() as patch:
                patch.setattr("feddyn.runs.checkpoint.write_whole", _full)
                patch.setattr(rows, -1000)
                with pytest.raises(feddyn.FeddynError, match="before it is kept"):
                    saver.save(simulation.federation)
            break
    del simulation, line, saver
    monkeypatch.setattr(rows, 1)
    simulation = feddyn.Simulation(
        feddyn.Plan(**arguments()), out, workers=1, resume=True, checkpoint=feddyn.CheckpointEvery(rounds=1)
    )
    list(simulation)
    saver = simulation._saver
    assert saver is not None
    assert len(saver.checkpoints._segments) < 4
    assert contents(out) == undisturbed


def test_a_read_only_directory_is_refused_and_an_interrupted_run_in_it_is_kept(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupted(tmp_path / "begun")
    whole = Path.open

    def read_only(path: Path, mode: str = "r", *words: Any, **more: Any) -> Any:
        if mode in ("wb", "ab", "a"):
            raise OSError(30, "Read-only file system")
        return whole(path, mode, *words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", read_only)
        for out, resume in ((tmp_path / "begun", True), (tmp_path / "new", False)):
            with pytest.raises(feddyn.InputError, match="cannot be used: Read-only file system"):
                feddyn.simulate(**arguments(), out=out, resume=resume)
    feddyn.simulate(**arguments(), out=tmp_path / "begun", resume=True)
    assert contents(tmp_path / "begun") == undisturbed


def _full(*_: object) -> str:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_resumed_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _interrupted(out)
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file() and file.name != "timings.jsonl"}
    with pytest.raises(feddyn.InputError, match="has another setting") as kept:
        feddyn.simulate(**{**arguments(), "seed": 2}, out=out, resume=True)
    with lock(out):  # though the error, which a notebook keeps, still knows of the record
        assert kept.tb
    with pytest.raises(feddyn.InputError, match="has the record of a run already: go on with it"):
        feddyn.simulate(**arguments(), out=out)
    for file in (out / "checkpoint").glob("*.json"):
        body = json.loads(file.read_text())
        body["checkpoint"]["key"] = "0" * 16
        body["sha256"] = _digest(body["checkpoint"])
        file.write_text(json.dumps(body))
    with pytest.raises(feddyn.InputError, match="belongs to another setting"):
        feddyn.simulate(**arguments(), out=out, resume=True)
    for file, data in before.items():
        assert file.suffix == ".json" or file.read_bytes() == data


def test_a_record_in_use_is_refused(tmp_path: Path) -> None:
    plan = feddyn.Plan(**arguments())
    rounds = iter(feddyn.Simulation(plan, tmp_path / "out", workers=1))
    next(rounds)
    with pytest.raises(feddyn.InputError, match="in use by a living process"):
        feddyn.simulate(**arguments(), out=tmp_path / "out", resume=True)
    rounds.close()
    assert feddyn.simulate(**arguments(), out=tmp_path / "out", resume=True).status == "finished"


def test_a_full_disk_keeps_the_checkpoint_before(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, written = tmp_path / "out", 0
    write = files.write_whole

    def full(path: Path, chunks: Iterator[bytes]) -> str:
        nonlocal written
        written += 1
        if written > 5 and path.parent.name == "checkpoint":
            raise OSError(28, "No space left on device")
        return write(path, chunks)

    with monkeypatch.context() as patch:
        patch.setattr("feddyn.runs.checkpoint.write_whole", full)
        with pytest.raises(feddyn.FeddynError, match=r"cannot be written to .*No space left.*before it is kept"):
            feddyn.simulate(**arguments(), out=out, workers=1, checkpoint=feddyn.CheckpointEvery(rounds=2))
    feddyn.simulate(**arguments(), out=out, resume=True)
    assert contents(out) == undisturbed


def test_when_a_run_says_it_is_complete_its_rounds_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure takes what was not synced: it must not take lines that no checkpoint is left to make again."""
    synced, sync = dict[str, int](), os.fsync

    def noted(handle: int) -> None:
        sync(handle)
        synced[str(Path(f"/proc/self/fd/{handle}").readlink())] = os.fstat(handle).st_size

    monkeypatch.setattr(os, "fsync", noted)
    feddyn.simulate(**arguments(), out=tmp_path / "out", workers=1)
    rounds = tmp_path / "out" / "rounds.jsonl"
    assert synced.get(str(rounds)) == rounds.stat().st_size


def _in_a_process(out: Path, workers: int, last: float = float("inf")) -> None:
    """A run in a process that kills itself at its `last` call or return of a function, Python's or C's: an instant
    that does not depend on how busy the machine is. How many a whole run has stands in a file beside it."""
    if (child := os.fork()) == 0:
        counted, me = 0, os.getpid()

        def count(*_: object) -> None:
            nonlocal counted
            counted += 1
            if counted >= last and os.getpid() == me:  # the workers go on counting
                os.kill(me, signal.SIGKILL)

        try:
            torch.set_num_threads(1)
            sys.setprofile(count)
            feddyn.simulate(
                **arguments(), out=out, workers=workers, checkpoint=feddyn.CheckpointEvery(rounds=1), resume=True
            )
            sys.setprofile(None)
            out.with_suffix(".counted").write_text(str(counted))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _wait_for_workers(out: Path) -> None:
    """One that was just being started when its run was killed has the lock until it finds itself alone."""
    if (out / "lock").exists():
        with (out / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)


def killed_at_random(undisturbed: dict[str, bytes], place: Path, seed: int, count: int) -> int:
    """Kill so many runs, each at a random instant, and resume each; how many were killed before they were done."""
    dice, early, whole = random.Random(seed), 0, {}
    for workers in (1, 2):
        _in_a_process(place / f"whole-{workers}", workers)
        whole[workers] = int((place / f"whole-{workers}.counted").read_text())
    for number in range(count):
        out, workers = place / str(number), 1 + number % 2
        _in_a_process(out, workers, last=dice.random() * whole[workers])
        _wait_for_workers(out)
        early += not (out / "summary.json").exists()
        feddyn.simulate(**arguments(), out=out, workers=1, resume=True)
        assert contents(out) == undisturbed, f"seed {seed}, kill {number}"
    return early


def test_fifty_runs_that_are_killed_at_random_instants(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    assert killed_at_random(undisturbed, tmp_path, seed=0, count=50) > 40


def test_a_run_that_diverges_keeps_its_last_good_checkpoint(unbalanced: Stored, tmp_path: Path) -> None:
    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        return feddyn.Solution(problem.start + (float("nan") if work.round == 3 else 1.0))

    parts = (torch.nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), solve)
    words = r"device \d diverged in round 4 \(the norm of its model is nan\); .*smaller steps or a larger alpha"
    with pytest.raises(feddyn.DivergenceError, match=words):
        feddyn.simulate(*parts, participation=2, rounds=9, out=tmp_path / "out")
    names = {file.name for file in (tmp_path / "out" / "checkpoint").iterdir()}
    assert names == {"000003.json", "000003.server.safetensors", "000003.devices.safetensors"}
    again = feddyn.simulate(*parts, participation=2, rounds=9, out=tmp_path / "out", resume=True)
    assert (again.status, len(again.history)) == ("diverged", 3)


def test_a_run_whose_device_kills_its_workers_can_be_resumed(unbalanced: Stored, tmp_path: Path) -> None:
    """The third round ends its workers while a file is there; without it the run goes on."""
    trap = tmp_path / "trap"
    trap.touch()

    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        if work.round == 2 and trap.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return feddyn.Solution(problem.start + 1.0 + work.round)

    arguments: dict[str, Any] = {"participation": 2, "rounds": 5, "workers": 2}
    parts = (torch.nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), solve)
    with pytest.raises(feddyn.FeddynError, match=r"training device \d in round 3 ended its worker 3 times"):
        feddyn.simulate(*parts, **arguments, out=tmp_path / "out")
    trap.unlink()
    rest = feddyn.simulate(*parts, **arguments, out=tmp_path / "out", resume=True)
    assert rest.history == feddyn.simulate(*parts, **arguments).history


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        calm = Path(folder) / "undisturbed"
        feddyn.simulate(**arguments(), out=calm, workers=1)
        early = killed_at_random(contents(calm), Path(folder), int(sys.argv[1]), int(sys.argv[2]))
        print(f"{sys.argv[2]} runs, {early} of them killed before they were done: the same bits every time")
