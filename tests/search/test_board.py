"""Leaderboards: equal tuning, paired seeds, resumed runs, and a page whose figures are those of the records."""

import json
import math
import shutil
import statistics
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import feddyn
from feddyn.cli.engine import start as started
from feddyn.errors import InputError
from feddyn.reports.leaderboard import page, ranks, summary, table
from feddyn.reports.standings import at_bytes, half_width, standings
from feddyn.search.board import Board, finished, level, play, read
from feddyn.search.tuned import read as read_tuned
from tests.cli.test_run import call

OPTIONS: dict[str, Any] = {
    "workers": 1,
    "state_memory": None,
    "checkpoint_rounds": None,
    "checkpoint_minutes": 5.0,
    "track": (),
}
OWN = """
from feddyn import FedAvg


class Mine(FedAvg.__mro__[1]):
    def __init__(self, drag: float = 0.5):
        self.drag = drag
        self.inner = FedAvg()

    def server(self, theta): return self.inner.server(theta)
    def device(self, theta): return {}
    def broadcast(self, server): return self.inner.broadcast(server)
    def problem(self, down, device, share): return self.inner.problem(down, device, share)
    def report(self, down, device, share, found): return self.inner.report(down, device, share, found)
    def weight(self, share): return share

    def aggregate(self, server, total, count, devices):
        mean = self.inner.aggregate(server, total, count, devices)["theta"]
        return {"theta": self.drag * server["theta"] + (1 - self.drag) * mean}
"""
TEXT = """
seeds = [3, 4]
trials = 2
[[setting]]
name = "tiny"
rounds = 6
tuning_rounds = 3
target = 1.0
participation = 2
population = { source = "synthetic", kind = "type2", devices = 5, samples = 20, features = 4, classes = 3 }
model = { name = "linear" }
solver = { lr = 0.1, epochs = 2, batch_size = 5 }
evaluation = { every = 2, devices = true }
[[method]]
algorithm = { name = "feddyn" }
space = { "algorithm.alpha" = [0.1, 100.0] }
[[method]]
label = "sharp"
algorithm = { name = "feddyn", alpha = 0.1 }
work = 0.5
space = { "solver.sam" = [0.05] }
[[method]]
algorithm = { name = "mine.py:Mine" }
space = { "algorithm.drag" = [0.2, 0.9] }
"""


SETTING: dict[str, Any] = tomllib.loads(TEXT)["setting"][0]


def document(**changes: Any) -> dict[str, Any]:
    return {**tomllib.loads(TEXT), **changes}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Board, Path]:
    folder = tmp_path_factory.mktemp("board")
    (folder / "mine.py").write_text(OWN)
    board = read(document(), folder / "out", folder)
    steps = list(play(board, started(OPTIONS), folder))
    assert [step.done for step in steps] == list(range(1, 12))
    assert all(step.total == 11 for step in steps)
    assert [step.words for step in steps if step.judged] == [
        f"{label}, seed {seed}" for seed in (3, 4) for label in ("FedDyn", "sharp", "Mine")
    ]
    return board, folder


def test_the_best_candidate_runs_with_every_seed(played: tuple[Board, Path]) -> None:
    """With lr = 0.1, alpha = 100 diverges at once, so the other candidate is better."""
    board, _ = played
    (contest,) = board.contests
    assert board.tuned(contest, "FedDyn") == {"algorithm.alpha": 0.1}
    lines = {job.candidate.changes["algorithm.alpha"]: finished(job.path) for job in board.tuning(contest, "FedDyn")}
    assert lines[100.0] is not None
    assert lines[100.0].status == "diverged"
    jobs = board.runs(contest, "FedDyn")
    settings = {seed: feddyn.load(job.path).setting for seed, job in jobs.items()}
    assert {seed: setting["seed"] for seed, setting in settings.items()} == {3: 3, 4: 4}
    assert {setting["population"]["seed"] for setting in settings.values()} == {3, 4}
    assert all(setting["algorithm"] == {"name": "feddyn", "alpha": 0.1} for setting in settings.values())
    assert all(feddyn.load(job.path).setting["seed"] == 1000 for job in board.tuning(contest, "FedDyn"))


def test_a_board_may_search_values_that_are_no_numbers(tmp_path: Path) -> None:
    """FedSplit's two means, which have neither an order nor an edge."""
    text = {
        "label": "split",
        "algorithm": {"name": "fedsplit", "step": 10.0},
        "space": {"algorithm.mean": ["act", "all"]},
    }
    board = read(document(seeds=[3], method=[text]), tmp_path / "out", tmp_path)
    for _ in play(board, started(OPTIONS), tmp_path):
        pass
    shown = page(board, [standings(board, contest) for contest in board.contests])
    assert "algorithm.mean in act, all" in shown
    assert "| mean a" in shown
    assert "smallest or the largest" not in shown


def test_what_is_reached_at_so_many_bytes_is_on_the_line_between_evaluations(played: tuple[Board, Path]) -> None:
    """Halfway between the evaluations of rounds 4 and 6 it is their mean; a byte less than all is all but the end."""
    board, _ = played
    (contest,) = board.contests
    one = standings(board, contest)[0]
    lines = {line["round"]: line["bytes_up"] + line["bytes_down"] for line in one.records[3].evaluated}
    first = replace(one, records={3: one.records[3]})
    four, six = one.value(3, 4), one.value(3, 6)
    assert four != six
    assert at_bytes(first, lines[4]) == [four]
    assert at_bytes(first, (lines[4] + lines[6]) / 2) == [pytest.approx((four + six) / 2, rel=1e-12)]
    assert at_bytes(first, lines[6] - 1) == [pytest.approx(six, abs=abs(six - four) / 100)]
    assert at_bytes(first, 2 * lines[6]) == [six]
    assert at_bytes(first, lines[2] - 1) == []


def test_without_the_records_of_candidates_the_page_is_the_same(played: tuple[Board, Path], tmp_path: Path) -> None:
    board, _ = played
    (contest,) = board.contests
    before = page(board, [standings(board, contest)])
    board.keep_tuned()
    shutil.copytree(board.directory, tmp_path / "copy")
    left = replace(board, directory=tmp_path / "copy")
    shutil.rmtree(left.home(contest) / "tuning")
    assert page(left, [standings(left, contest)]) == before
    left.keep_tuned()
    assert left.tuned(contest, "FedDyn") == board.tuned(contest, "FedDyn")
    (left.home(contest) / "tuned.json").unlink()
    assert left.tuned(contest, "FedDyn") is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("[]", "not a table"),
        ('{"FedDyn": {"alpha": 0.1}}', "methods is"),
        ('{"model": "all", "methods": {"FedDyn": 3}}', "FedDyn is 3"),
        ('{"methods": {}}', "model is missing"),
    ],
)
def test_a_damaged_file_of_tuned_values_is_refused(tmp_path: Path, words: str, why: str) -> None:
    (tmp_path / "tuned.json").write_text(words)
    with pytest.raises(InputError, match=f"tuned.json is damaged: .*{why}"):
        read_tuned(tmp_path, "all")


def test_what_was_tuned_by_another_model_is_refused(played: tuple[Board, Path], tmp_path: Path) -> None:
    board, _ = played
    (contest,) = board.contests
    board.keep_tuned()
    shutil.copytree(board.directory, tmp_path / "copy")
    left = replace(board, directory=tmp_path / "copy", model="server")
    shutil.rmtree(left.home(contest) / "tuning")
    with pytest.raises(InputError, match="has what was tuned by the model 'all', and not by 'server'"):
        left.tuned(contest, "FedDyn")


def test_all_do_the_same_work(played: tuple[Board, Path]) -> None:
    """Sharpness-aware steps take two gradients, and that method does half the epochs."""
    board, _ = played
    (contest,) = board.contests
    counts = {
        label: feddyn.load(board.runs(contest, label)[3].path).history[-1]["gradients"] for label in contest.methods
    }
    assert counts["FedDyn"] == counts["sharp"] == counts["Mine"]


def test_what_is_there_is_not_trained_again(played: tuple[Board, Path]) -> None:
    board, folder = played

    def never(*_: Any) -> Any:
        raise AssertionError("trained again")

    assert len(list(play(board, never, folder))) == 11
    (contest,) = board.contests
    job = board.runs(contest, "Mine")[4]
    (job.path / "summary.json").unlink()
    with pytest.raises(AssertionError, match="trained again"):
        list(play(board, never, folder))
    list(play(board, started(OPTIONS), folder))
    assert finished(job.path) is not None


def test_the_page_has_the_figures_of_the_records(played: tuple[Board, Path]) -> None:
    board, _ = played
    (contest,) = board.contests
    found = standings(board, contest)
    means = [statistics.mean(one.values) for one in found]
    assert means == sorted(means)  # an objective: the lowest first
    leader = found[0]
    record = leader.records[3]
    objectives = {line["round"]: line["models"]["all"]["objective"] for line in record.history if "models" in line}
    assert leader.value(3) == pytest.approx(statistics.mean(list(objectives.values())[-3:]), rel=1e-12)
    assert level(record, "all", rounds=4) == pytest.approx(statistics.mean([objectives[2], objectives[4]]), rel=1e-12)
    shown = table(contest, found)
    row = dict(zip(shown.columns, shown.rows[0], strict=True))
    assert row["objective at the end"] == f"{means[0]:.4f} ± {statistics.stdev(leader.values):.4f}"
    servers = [level(record, "server") for record in leader.records.values()]
    assert row["of the server's model"].startswith(f"{statistics.mean(servers):.4f}")
    assert row["seeds"] == "2"
    places = ranks(board, [found])
    assert [row[0] for row in places.rows] == [one.label for one in found]
    assert [row[1:] for row in places.rows] == [["1", "1.0"], ["2", "2.0"], ["3", "3.0"]]
    worst = [max(record.on_devices["objective"]) for record in leader.records.values()]  # a tenth of five is one
    assert row["objective, worst tenth of devices"].startswith(f"{statistics.mean(worst):.4f}")
    text = page(board, [found])
    assert "algorithm.alpha in 0.1, 100" in text
    assert f"| tiny | {leader.label} |" in text
    assert summary(board, [found]).rows[0][-1] == "2"


def test_intervals_are_students() -> None:
    """Of 1, 2, 3: mean 2, deviation 1, and the 97.5% quantile of t with two degrees of freedom is 4.303; of 20 numbers
    it is taken for ten, 2.228, where the true one is 2.093."""
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.303 / 3**0.5)
    assert math.isinf(half_width([1.0]))
    many = [float(i % 2) for i in range(20)]
    assert half_width(many) == pytest.approx(2.228 * statistics.stdev(many) / 20**0.5)


def test_a_run_that_diverged_came_to_nothing(played: tuple[Board, Path], tmp_path: Path) -> None:
    board, _ = played
    (contest,) = board.contests
    path = board.runs(contest, "FedDyn")[3].path
    copied = tmp_path / "copy"
    copied.mkdir()
    for file in path.iterdir():
        if file.is_file():
            (copied / file.name).write_bytes(file.read_bytes())
    summary_ = json.loads((copied / "summary.json").read_text())
    (copied / "summary.json").write_text(json.dumps({**summary_, "status": "diverged"}))
    record = finished(copied)
    assert record is not None
    assert math.isnan(level(record, "all"))


def test_a_board_need_not_evaluate_the_servers_model(tmp_path: Path) -> None:
    """Its page has a dash then where that would stand."""
    (tmp_path / "mine.py").write_text(OWN)
    only = {**SETTING, "evaluation": {"every": 2, "models": ["all"]}}
    board = read(document(setting=[only], seeds=[3]), tmp_path / "out", tmp_path)
    for _ in play(board, started(OPTIONS), tmp_path):
        pass
    found = standings(board, board.contests[0])
    shown = table(board.contests[0], found)
    place = shown.columns.index("of the server's model")
    assert [row[place] for row in shown.rows] == ["-"] * 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": [1]}, "seed is not known in a leaderboard; did you mean 'seeds'"),
        ({"model": "best"}, "model: 'best' is none that can be judged by"),
        ({"setting": [{**SETTING, "evaluation": {"models": ["server"]}}]}, "judged by the model 'all': name it in"),
        ({"seeds": []}, "seeds must be a list of different whole numbers"),
        ({"seeds": [1, 1]}, "seeds must be a list of different whole numbers"),
        ({"seeds": [1000]}, "tuning_seed 1000 is one of seeds"),
        ({"trials": 1}, "FedDyn: its space has 2 candidates, more than the 1 trials"),
        ({"trials": 0}, "trials must be a whole number of at least 1"),
        ({"setting": []}, "a leaderboard needs .*setting.* tables"),
        ({"method": {}}, "a leaderboard needs .*method.* tables"),
        ({"method": [{"algorithm": {"name": "feddin"}}]}, "setting tiny: .*did you mean 'feddyn'"),
        ({"method": [{"algorithm": {"name": "fedavg"}, "space": {"algorithm.alpha": [1.0]}}]}, "no method here has it"),
        (
            {"method": [{"algorithm": {"name": "feddyn"}, "space": {"algorithm.alpha": [-1.0]}}]},
            "alpha must be a finite",
        ),
        ({"method": [{"algorithm": {"name": "fedavg"}, "work": 0}]}, "work must be a finite number above 0"),
        ({"method": [{"algorithm": {"name": "fedavg"}}] * 2}, "two methods are called 'FedAvg'"),
        ({"reference": "FedDan"}, "reference: 'FedDan' is no method of the leaderboard; did you mean 'FedDyn'"),
    ],
)
def test_bad_boards_are_refused_before_anything_is_trained(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    with pytest.raises(feddyn.InputError, match=words):
        read(document(**changes), tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_board_that_comes_with_the_package_is_sound() -> None:
    """Every candidate of every setting is checked, and each method has the same number of them."""
    from feddyn.search.space import grid
    from feddyn.settings.documents import read as read_document

    board = read(read_document(Path(feddyn.__file__).parent / "search" / "leaderboard.toml"), Path("out"))
    assert {len(grid(method)) for contest in board.contests for method in contest.methods.values()} == {board.trials}
    assert board.first == "FedDyn"


def test_the_command_makes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)
    Path("my.toml").write_text(TEXT)
    words = ("leaderboard", "my.toml", "--method", "FedDyn", "--workers", "1", "--out", "there")
    assert call(*words, "--show-only", monkeypatch=monkeypatch) == 0
    assert "| tiny | not run |" in Path("there/leaderboard.md").read_text()
    assert call(*words, monkeypatch=monkeypatch) == 0
    assert "| tiny | FedDyn |" in Path("there/leaderboard.md").read_text()
    assert "the search space: at most 2 candidates" in capsys.readouterr().out
    assert call("leaderboard", "my.toml", "--setting", "tinny", monkeypatch=monkeypatch) == 2
    assert "no setting 'tinny'; did you mean 'tiny'" in capsys.readouterr().err
