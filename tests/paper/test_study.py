"""Studies: runs that pause, go on, are shared, and stop where they have reached what is wanted."""

import os
import shutil
import signal
import statistics
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from feddyn.errors import FeddynError
from feddyn.paper import study
from feddyn.paper.catalogue import Experiment, PaperRun, experiments
from feddyn.paper.cost import core_seconds
from feddyn.paper.published import Row
from feddyn.paper.trials import Choice, Trial, cheapest_first, reached, trials
from feddyn.records.lock import lock
from feddyn.records.reader import find
from feddyn.runs.plan import Plan
from feddyn.runs.run import Run
from feddyn.runs.saving import CheckpointEvery
from feddyn.runs.simulation import Lines, Simulation, Start
from feddyn.settings.building import plans
from tests.paper.tiny import ROUNDS, job, setting


def start(plan: Plan, directory: Path, label: str) -> tuple[Run, Lines]:
    nothing = CheckpointEvery(keep=0)
    simulation = Simulation(plan, directory, workers=1, resume=True, checkpoint=nothing)
    return simulation.run, iter(simulation)


def any_number(side_by_side: int) -> Start:
    return start


def trial(single: PaperRun, directory: Path, rounds: int | None = None) -> Trial:
    experiment = Experiment("tiny", "table", "tiny", [single], {})
    (found,) = trials(experiment, directory, Choice(rounds=rounds))
    return found


def run(found: Trial, budget: float | None = None) -> list[dict[str, Any]]:
    """Its rounds, until it is complete or has a problem."""
    lines = list(study.run(found, study.Budget(budget), start))
    found.look()
    assert not any(isinstance(line, FeddynError) for line in lines), lines
    return [line for line in lines if isinstance(line, dict)]


def test_a_paused_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """Three pauses, against one run without any."""
    single = job("feddyn")
    for rounds, before in ((3, 0), (4, 3), (None, 4)):
        found = trial(single, tmp_path, rounds)
        assert not found.complete
        lines = run(found)
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
    lines = run(found)
    assert len(lines) < ROUNDS
    assert reached(lines, 0.9) is lines[-1]
    assert found.complete
    # another experiment wants all rounds of the same run: it goes on from there
    more = trial(job("feddyn"), tmp_path)
    assert more.state == f"at round {len(lines)} of {ROUNDS}"
    rest = run(more)
    assert [line["round"] for line in rest] == list(range(len(lines) + 1, ROUNDS + 1))


def test_time_that_is_over_stops_a_run_between_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = trial(job("feddyn"), tmp_path)
    assert run(found, 1e-9) == []
    clock = iter((0.0, 0.5, 1.5))
    monkeypatch.setattr("time.monotonic", lambda: next(clock, 2.0))
    assert len(run(found, 1.0)) == 1
    assert found.state == f"at round 1 of {ROUNDS}"
    monkeypatch.undo()
    assert study.Budget(None).left == float("inf")
    assert 0 < study.Budget(60).left <= 60


def test_a_run_that_cannot_go_on_says_why_and_the_others_run(tmp_path: Path) -> None:
    jobs = [job("feddyn"), job("fedavg")]
    experiment = Experiment("tiny", "table", "tiny", jobs, {})
    (tmp_path / jobs[0].directory(0)).mkdir()
    (tmp_path / jobs[0].directory(0) / "thesis.txt").touch()
    made = study.Study([(experiment, Choice())], tmp_path)
    assert len(list(made.train(study.Budget(None), any_number, 1))) == ROUNDS
    first, second = made.found
    assert "choose another one" in first.problem
    assert (first.complete, second.complete) == (False, True)


def test_a_damaged_record_does_not_stop_the_others(tmp_path: Path) -> None:
    jobs = [job("feddyn"), job("fedavg")]
    experiment = Experiment("tiny", "table", "tiny", jobs, {})
    run(trial(jobs[0], tmp_path, 2))
    file = tmp_path / jobs[0].directory(0) / "rounds.jsonl"
    file.write_text("[]\n")
    made = study.Study([(experiment, Choice())], tmp_path)
    assert [each.job.method for each in made.todo] == ["fedavg"]
    assert made.found[0].state == "cannot go on"
    assert len(list(made.train(study.Budget(None), any_number, 1))) == ROUNDS
    assert f"{file} is damaged" in made.found[0].problem
    assert file.read_text() == "[]\n"


def test_a_record_without_its_checkpoint_is_not_begun_anew(tmp_path: Path) -> None:
    """As of those that are published: asked for more rounds, it says what is missing, and nothing of it is lost."""
    single = job("feddyn")
    run(trial(single, tmp_path, 3))
    there = tmp_path / single.directory(0)
    shutil.rmtree(there / "checkpoint")
    before = {file.name: file.read_bytes() for file in there.iterdir()}
    found = trial(single, tmp_path)
    (problem,) = study.run(found, study.Budget(None), start)
    assert "has rounds, but no whole checkpoint to go on from: put its folder checkpoint back" in str(problem)
    assert {file.name: file.read_bytes() for file in there.iterdir()} == before
    (there / "summary.json").unlink()  # as after a kill before the first checkpoint
    assert len(run(found)) == ROUNDS


def test_what_another_process_has_is_tried_again_in_the_end(tmp_path: Path) -> None:
    jobs = [job("feddyn"), job("fedavg")]
    experiment = Experiment("tiny", "table", "tiny", jobs, {})
    made = study.Study([(experiment, Choice())], tmp_path)
    first, second = (tmp_path / single.directory(0) for single in jobs)
    run(trial(jobs[0], tmp_path, 1))
    with ExitStack() as other:
        other.enter_context(lock(first))

        def begin(plan: Plan, directory: Path, label: str) -> tuple[Run, Lines]:
            if directory == second:
                other.close()
            return start(plan, directory, label)

        assert len(list(made.train(study.Budget(None), lambda side_by_side: begin, 1))) == 2 * ROUNDS - 1
    assert [each.problem for each in made.found] == ["", ""]


def test_runs_that_others_have_are_waited_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a command that was killed have them, until they are saved."""
    single = job("feddyn")
    run(trial(single, tmp_path, 1))
    made = study.Study([(Experiment("tiny", "table", "tiny", [single], {}), Choice())], tmp_path)
    with ExitStack() as other:
        other.enter_context(lock(tmp_path / single.directory(0)))
        monkeypatch.setattr("time.sleep", lambda seconds: other.close() if seconds == 1.0 else None)
        assert len(list(made.train(study.Budget(None), any_number, 1))) == ROUNDS - 1
    assert made.found[0].complete


def test_a_run_that_two_experiments_share_is_complete_for_both(tmp_path: Path) -> None:
    easy, all_rounds = job("feddyn", targets=(0.5,)), job("feddyn")
    wanted = [(Experiment(each.row, "table", "", [each], {}), Choice()) for each in (easy, all_rounds)]
    (both,) = study.Study(wanted, tmp_path).found
    both.history = [{"round": 1, "models": {"all": {"accuracy": 0.6}}}]
    assert (both.state, both.complete) == (f"at round 1 of {ROUNDS}", False)


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def start_or_die(plan: Plan, directory: Path, label: str) -> tuple[Run, Lines]:
    begun = directory.parent / "begun"
    if "fedavg" in directory.name:
        begun.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for(begun)  # or FedAvg might be left for the process of the test itself
    return start(plan, directory, label)


def test_a_process_that_is_killed_takes_only_its_run_with_it(tmp_path: Path) -> None:
    jobs = [job(method) for method in ("fedavg", "feddyn", "scaffold", "fedprox")]
    made = study.Study([(Experiment("tiny", "table", "tiny", jobs, {}), Choice())], tmp_path)
    assert list(made.train(study.Budget(None), lambda side_by_side: start_or_die, 2))
    lost, *others = made.found
    assert lost.problem == "row FedAvg: its process was killed from outside, perhaps for want of memory"
    assert all(each.complete and not each.problem for each in others)


def test_a_run_that_another_command_has_completed_is_left_alone(tmp_path: Path) -> None:
    found = trial(job("feddyn"), tmp_path, 2)
    run(trial(job("feddyn"), tmp_path, 2))
    assert not found.complete
    assert run(found) == []
    assert len(found.history) == 2


def test_runs_side_by_side_are_the_same_runs(tmp_path: Path) -> None:
    """Two at a time in processes of their own, against one after the other."""
    experiment = Experiment("tiny", "table", "tiny", [job(method) for method in ("feddyn", "fedavg", "scaffold")], {})
    for side_by_side in (1, 2):
        made = study.Study([(experiment, Choice())], tmp_path / str(side_by_side))
        assert list(made.train(study.Budget(None), any_number, side_by_side))
        assert all(found.complete for found in made.found)
    for path in (tmp_path / "1").rglob("rounds.jsonl"):
        assert path.read_bytes() == (tmp_path / "2" / path.relative_to(tmp_path / "1")).read_bytes()


def start_and_wait(side_by_side: int, plan: Plan, directory: Path, label: str) -> tuple[Run, Lines]:
    """FedDyn beside others: a round, for which these wait, and then nothing until it is ended."""
    made, lines = start(plan, directory, label)
    with (directory.parent / "begun.txt").open("a") as file:
        file.write(f"{label} {side_by_side}\n")
    done = directory.parent / "a round of FedDyn"

    def waiting() -> Lines:
        with closing(lines):
            yield next(lines)
            done.touch()
            time.sleep(120)

    if "FedDyn" in label:
        return made, waiting() if side_by_side > 1 else lines
    wait_for(done)
    return made, lines


def test_the_last_runs_go_on_with_the_processes_of_those_that_are_done(tmp_path: Path) -> None:
    """Three runs in two processes: FedDyn is saved when no other is left, and goes on alone to the same bits."""
    jobs = [job(method) for method in ("feddyn", "fedavg", "scaffold")]
    made = study.Study([(Experiment("tiny", "table", "tiny", jobs, {}), Choice())], tmp_path)
    lines = list(made.train(study.Budget(None), partial(partial, start_and_wait), 2))
    begun = (tmp_path / "begun.txt").read_text().splitlines()
    assert sorted(begun[:-1]) == ["row FedAvg 2", "row FedDyn 2", "row SCAFFOLD 2"]
    assert begun[-1] == "row FedDyn 1"
    assert [line["round"] for trial, line in lines if trial.job.method == "feddyn"] == list(range(1, ROUNDS + 1))
    assert all(found.complete for found in made.found)
    run(trial(jobs[0], tmp_path / "alone"))
    record = Path(jobs[0].directory(0), "rounds.jsonl")
    assert (tmp_path / record).read_bytes() == (tmp_path / "alone" / record).read_bytes()


def test_a_run_that_diverges_is_complete(tmp_path: Path) -> None:
    wild = PaperRun("row", "fedavg", "tiny", {**setting("fedavg"), "solver": {"lr": 1e9, "epochs": 1}})
    found = trial(wild, tmp_path)
    run(found)
    assert found.state == "diverged"
    assert trial(wild, tmp_path).state == "diverged"


def test_cheap_rows_come_first(tmp_path: Path) -> None:
    """Row by row with one seed each, by the computing that is left of them."""
    long = PaperRun("slow", "feddyn", "tiny", setting("feddyn") | {"rounds": 9 * ROUNDS})
    jobs = [long, job("fedavg", row="slow"), job("fedavg", row="quick"), job("scaffold", row="quick")]
    found = trials(Experiment("t", "table", "t", jobs, {}), tmp_path, Choice(seeds=2))
    rows = [(trial.job.row, trial.seed) for trial in cheapest_first(found)]
    assert rows == [(row, seed) for row in ("quick", "slow") for seed in (0, 0, 1, 1)]


@pytest.mark.parametrize("rounds", [1, ROUNDS - 1])
def test_a_run_that_is_wanted_twice_runs_as_far_as_either_wants_and_no_further(rounds: int, tmp_path: Path) -> None:
    """Its lower target, and so many rounds for a figure that has none: not its higher target, nor all of its rounds."""
    single = job("feddyn", targets=(0.999, 0.8))
    table, figure = Experiment("t", "table", "t", [single], {}), Experiment("f", "figure", "f", [job("feddyn")], {})
    ((_, plan),) = plans(single.setting(0))
    lowest = reached(list(Simulation(plan, tmp_path / "whole", workers=1)), 0.8)
    assert lowest is not None
    assert 1 < lowest["round"] < ROUNDS - 1
    wanted = [(table, Choice(lower=True)), (figure, Choice(rounds=rounds))]
    made = study.Study(wanted, tmp_path)
    (both,) = made.found
    assert both.rounds_left == ROUNDS
    lines = list(made.train(study.Budget(None), any_number, 1))
    assert len(lines) == len(both.history) == max(lowest["round"], rounds)
    assert (both.complete, both.rounds_left) == (True, 0)


@pytest.mark.parametrize(("method", "rounds"), [("feddyn", 4), ("scaffold", 3), ("fedavg", 8), ("fedprox", 8)])
def test_expected_rounds_are_the_papers(tmp_path: Path, method: str, rounds: int) -> None:
    """Half as many as transmissions for SCAFFOLD; all of them where the paper did not get there, or took longer."""
    row = Row("t", "", "", "", 50.0, "4", "6", "8+", "900")
    experiment = Experiment("t", "table", "t", [job(method, targets=(0.5,))], {("row", 50.0): row})
    (found,) = trials(experiment, tmp_path, Choice())
    assert found.rounds_left == rounds
    found.history = [{"round": number + 1} for number in range(2)]
    assert found.rounds_left == rounds - 2
    found.history = [{"round": number + 1} for number in range(5)]
    assert found.rounds_left == ROUNDS - 5  # beyond the paper's: it may take all that are left


def test_computing_follows_from_steps_rounds_and_devices() -> None:
    jobs = {job.row + job.method: job.document for job in experiments()["participation"].jobs}
    ten, full = (core_seconds(jobs[f"emnist-l-iid-{p}feddyn"], 100) for p in (10, 100))
    assert 0 < ten < full < 11 * ten
    assert core_seconds(jobs["emnist-l-iid-10feddyn"], 200) == pytest.approx(2 * ten)
    fewer = core_seconds(jobs["emnist-l-iid-10fedavg"], 100)  # 10 epochs instead of 50
    assert ten / 6 < fewer < ten
    for experiment in experiments().values():
        assert all(core_seconds(single.document, 1) > 0 for single in experiment.jobs)


def test_computing_is_about_what_was_measured() -> None:
    """The fastest record of each kind of run, on whatever machine made it: within a factor of three of the estimate."""
    measured: dict[tuple[str, float, str], tuple[float, float]] = {}
    for record in find([Path(__file__).parents[2] / "docs" / "results" / "records"])[0]:
        setting = record.setting
        if len(record.spent) >= 20:
            kind = setting["population"]["source"], setting["participation"], setting["algorithm"]["name"]
            pair = statistics.mean(record.spent.values()), core_seconds(dict(setting), 1)
            measured[kind] = min(measured.get(kind, pair), pair)
    assert len(measured) > 10
    for kind, (took, estimate) in measured.items():
        assert estimate / 3 < took < 3 * estimate, kind
