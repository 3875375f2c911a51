"""Checkpoints: what is read back is what was saved, also when it was written anew, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

import feddyn
from tests.runs.test_resume import arguments, contents


def stopped(out: Path, round: int, every: int) -> None:
    """A run that is saved every so many rounds and stopped after one."""
    simulation = feddyn.Simulation(
        feddyn.Plan(**arguments()), out, workers=1, checkpoint=feddyn.CheckpointEvery(rounds=every)
    )
    for line in simulation:
        if line["round"] == round:
            break


def checkpoint(out: Path, round: int) -> dict[str, Any]:
    """What the file that makes a checkpoint says."""
    body: dict[str, Any] = json.loads((out / "checkpoint" / f"{round:06d}.json").read_bytes())["checkpoint"]
    return body


def resumed(out: Path) -> int:
    """Go on to the end; the first round that is run again."""
    simulation = feddyn.Simulation(feddyn.Plan(**arguments()), out, workers=1, resume=True)
    first, *_ = (int(line["round"]) for line in simulation)
    return first


@pytest.mark.parametrize("round", [6, 7])
def test_a_run_resumes_from_device_states_that_were_written_anew(
    undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round: int
) -> None:
    """Twelve devices, five a round, each round saved, one row of slack: after rounds 1, 2, ... there are 5, 10, ...
    rows on disk and at most 12 devices. In round 6 at the latest 30 rows would be more than 2 * 12 + 1, so all devices
    are written anew, in one file; resumed from there, or a round later, the bits are those of the whole run."""
    monkeypatch.setattr("feddyn.runs.checkpoint.ROWS", 1)
    stopped(tmp_path / "out", round, every=1)
    files = [segment["devices"] for segment in checkpoint(tmp_path / "out", round)["devices"]]
    assert files[0] > 5  # more than were active in any round
    assert len(files) < round
    assert resumed(tmp_path / "out") == round + 1
    assert contents(tmp_path / "out") == undisturbed


def test_a_checkpoint_has_only_the_devices_that_changed(tmp_path: Path) -> None:
    """Five devices a round, saved after rounds 2 and 4: of each two rounds between five and ten."""
    stopped(tmp_path / "out", 4, every=2)
    first, second = (segment["devices"] for segment in checkpoint(tmp_path / "out", 4)["devices"])
    lines = [json.loads(line) for line in (tmp_path / "out" / "rounds.jsonl").read_text().splitlines()]
    active = [set(line["active"]) for line in lines]
    assert (first, second) == (len(active[0] | active[1]), len(active[2] | active[3]))


@pytest.mark.parametrize("field", ["round", "recorded", "totals"])
def test_a_checkpoint_whose_numbers_were_changed_is_passed_over(
    undisturbed: dict[str, bytes], tmp_path: Path, field: str
) -> None:
    """Its files are as they were and it can be read, but its own hash is that of other numbers. The run goes on from
    the one before, after round 4."""
    stopped(tmp_path / "out", 6, every=2)
    file = tmp_path / "out" / "checkpoint" / "000006.json"
    outer = json.loads(file.read_bytes())
    value = outer["checkpoint"][field]
    outer["checkpoint"][field] = [n + 1 for n in value] if field == "totals" else value - 1
    file.write_text(json.dumps(outer))
    assert resumed(tmp_path / "out") == 5
    assert contents(tmp_path / "out") == undisturbed


def test_a_record_that_lost_lines_which_were_saved_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "out", 4, every=2)
    lines = tmp_path / "out" / "rounds.jsonl"
    lines.write_bytes(lines.read_bytes()[:-20])
    with pytest.raises(feddyn.FeddynError, match="has lost lines that the checkpoint counts on"):
        resumed(tmp_path / "out")
