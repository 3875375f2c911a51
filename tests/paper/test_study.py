"""Studies: runs that pause, go on, are shared, and stop where they have reached what is wanted."""

from pathlib import Path

import pytest

from feddyn.paper import study
from feddyn.paper.catalogue import Experiment, PaperRun
from feddyn.paper.published import Row
from feddyn.runs.plan import Plan
from feddyn.runs.run import Run
from feddyn.runs.saving import CheckpointEvery
from feddyn.runs.simulation import Lines, Simulation
from feddyn.settings.building import plans
from tests.paper.tiny import ROUNDS, job, setting


def start(plan: Plan, directory: Path, label: str) -> tuple[Run, Lines]:
    nothing = CheckpointEvery(keep=0)
    simulation = Simulation(plan, directory, workers=1, resume=True, checkpoint=nothing)
    return simulation.run, iter(simulation)


def trial(single: PaperRun, directory: Path, rounds: int | None = None) -> study.Trial:
    experiment = Experiment("tiny", "table", "tiny", [single], {})
    (found,) = study.trials(experiment, directory, 1, rounds, lambda job: True)
    return found


def test_a_paused_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """Three pauses, against one run without any."""
    single = job("feddyn")
    for rounds, before in ((3, 0), (4, 3), (None, 4)):
        found = trial(single, tmp_path, rounds)
        assert not found.complete
        lines = list(study.run(found, study.Budget(None), start, {}))
        assert found.complete
        assert [line["round"] for line in lines] == list(range(before + 1, (rounds or ROUNDS) + 1))
    ((_, plan),) = plans(single.setting(0))
    for _ in Simulation(plan, tmp_path / "whole", workers=1):
        pass
    record = tmp_path / single.directory(0)
    assert (record / "rounds.jsonl").read_bytes() == (tmp_path / "whole/rounds.jsonl").read_bytes()
    assert not (record / "checkpoint").exists()
    assert trial(single, tmp_path).state == "complete"


def test_a_run_stops_when_all_its_targets_are_reached(tmp_path: Path) -> None:
    easy = job("feddyn", targets=(0.9, 0.8))
    found = trial(easy, tmp_path)
    assert found.state == "new"
    lines = list(study.run(found, study.Budget(None), start, {}))
    assert len(lines) < ROUNDS
    assert study.reached(lines, 0.9) is lines[-1]
    assert found.complete
    # another experiment wants all rounds of the same run: it goes on from there
    more = trial(job("feddyn"), tmp_path)
    assert more.state == f"at round {len(lines)} of {ROUNDS}"
    rest = list(study.run(more, study.Budget(None), start, {}))
    assert [line["round"] for line in rest] == list(range(len(lines) + 1, ROUNDS + 1))


def test_time_that_is_over_stops_a_run_between_rounds(tmp_path: Path) -> None:
    found = trial(job("feddyn"), tmp_path)
    assert len(list(study.run(found, study.Budget(0.0), start, {}))) == 1
    assert found.state == f"at round 1 of {ROUNDS}"
    assert study.Budget(None).left == float("inf")
    assert 0 < study.Budget(60).left <= 60


def test_a_run_that_diverges_is_complete(tmp_path: Path) -> None:
    wild = PaperRun("row", "fedavg", "tiny", {**setting("fedavg"), "solver": {"lr": 1e9, "epochs": 1}})
    found = trial(wild, tmp_path)
    list(study.run(found, study.Budget(None), start, {}))
    assert found.state == "diverged"
    assert trial(wild, tmp_path).state == "diverged"


def test_quick_rows_come_first_and_seed_by_seed(tmp_path: Path) -> None:
    jobs = [job("feddyn", row="slow"), job("fedavg", row="quick"), job("scaffold", row="quick")]
    found = study.trials(Experiment("t", "table", "t", jobs, {}), tmp_path, 2, None, lambda job: True)
    ordered = study.units(found, {place: {"slow": 9.0, "quick": 2.0}[t.job.row] for place, t in enumerate(found)})
    assert [(unit[0].seed, unit[0].job.row, len(unit)) for unit in ordered] == [
        (0, "quick", 2),
        (0, "slow", 1),
        (1, "quick", 2),
        (1, "slow", 1),
    ]


@pytest.mark.parametrize(("method", "rounds"), [("feddyn", 4), ("scaffold", 3), ("fedavg", 8), ("fedprox", 8)])
def test_expected_rounds_are_the_papers(tmp_path: Path, method: str, rounds: int) -> None:
    """Half as many as transmissions for SCAFFOLD; all of them where the paper did not get there, or took longer."""
    row = Row("t", "", "", "", 50.0, "4", "6", "8+", "900")
    experiment = Experiment("t", "table", "t", [job(method)], {("row", 50.0): row})
    (found,) = study.trials(experiment, tmp_path, 1, None, lambda job: True)
    assert study.expected_rounds(found, experiment) == rounds
