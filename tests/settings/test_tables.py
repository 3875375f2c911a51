"""A table of one's own in a setting: found beside it, known by its hash, refused when it has changed."""

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

import feddyn
from feddyn import cli
from feddyn.records.layout import key
from feddyn.settings.building import plans
from feddyn.settings.documents import read
from feddyn.settings.starter import write


@pytest.fixture
def feddyn_(monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(*words: object) -> int:
        monkeypatch.setattr(sys, "argv", ["feddyn", *map(str, words)])
        try:
            cli.main()
        except SystemExit as done:
            return done.code if isinstance(done.code, int) else 1
        return 0

    return call


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A start in a folder that is not the current one."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    write(tmp_path / "mine")
    return tmp_path / "mine"


def lines(directory: Path) -> bytes:
    return (directory / "rounds.jsonl").read_bytes()


def test_the_start_runs_as_it_is(mine: Path, feddyn_: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It reaches its target by its own metric, after some rounds but not all, and can be used."""
    assert feddyn_("run", mine / "setting.toml", "--out", mine / "run", "--workers", 1) == 0
    assert "models transmitted to reach f1 >= 0.76" in capsys.readouterr().out
    run = feddyn.load(mine / "run")
    assert run.status == "target reached"
    assert 2 < len(run.history) < 15
    assert set(run.on_devices) >= {"device", "samples", "f1"}
    population = plans(read(mine / "setting.toml"), folder=mine)[0].plan.population
    assert population.test is not None
    x, y = population.test
    right = (run.parts.outputs(run.model(), x).argmax(1) == y).double().mean()
    assert float(right) == pytest.approx(run.history[-1]["models"]["all"]["accuracy"], abs=1e-12)


def test_nothing_is_overwritten(mine: Path, feddyn_: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = (mine / "data.csv").read_bytes()
    (mine / "setting.toml").unlink()
    (mine / "model.py").write_text("mine")
    assert feddyn_("init", mine) == 2
    assert "model.py is there already: nothing is overwritten" in capsys.readouterr().err
    assert (mine / "model.py").read_text() == "mine"
    assert (mine / "data.csv").read_bytes() == before
    assert not (mine / "setting.toml").exists()


def test_a_record_goes_on_and_refuses_other_data(mine: Path, feddyn_: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Stopped in the middle, from another folder and after the data was moved: the same bits. Changed: refused."""
    changes = ["target.value=0.99", "rounds=6"]
    words = [word for change in changes for word in ("--set", change)]
    assert feddyn_("run", mine / "setting.toml", *words, "--workers", 1, "--out", mine / "whole") == 0
    (plan,) = (plan for _, plan in plans(read(mine / "setting.toml"), changes, folder=mine))
    rounds = iter(feddyn.Simulation(plan, mine / "part", workers=1))
    for _ in range(3):
        next(rounds)
    rounds.close()
    assert len(lines(mine / "part").splitlines()) == 3
    changed = (mine / "data.csv").read_text().replace("east,41,m", "east,42,m", 1)
    shutil.copy(mine / "data.csv", mine / "kept.csv")
    (mine / "data.csv").write_text(changed)
    assert feddyn_("resume", mine / "part") == 2
    assert "data.csv has changed since the run was begun" in capsys.readouterr().err
    (mine / "data.csv").unlink()
    assert feddyn_("resume", mine / "part") == 2
    assert "population.file: there is no file" in capsys.readouterr().err
    shutil.move(mine / "kept.csv", mine / "part" / "data.csv")
    assert feddyn_("resume", mine / "part", "--workers", 2) == 0
    assert lines(mine / "part") == lines(mine / "whole")


def test_the_place_of_the_data_is_not_part_of_a_runs_key(mine: Path, tmp_path: Path) -> None:
    shutil.copytree(mine, tmp_path / "copy")
    one, two = (
        plans(read(folder / "setting.toml"), folder=folder)[0].plan.setting() for folder in (mine, tmp_path / "copy")
    )
    assert one["population"]["file"] == str(mine / "data.csv")
    assert one["population"]["file"] != two["population"]["file"]
    assert key(one) == key(two)
    other = {**one, "population": {**one["population"], "sha256": "0"}}
    assert key(other) != key(one)
    split = {"population": {"source": "mnist", "file": "a.npz"}}
    assert key(split) != key({"population": {"source": "mnist", "file": "b.npz"}})


def test_the_best_of_a_search_finds_its_data(mine: Path, feddyn_: Any) -> None:
    sweep = "\n[sweep.space]\nalgorithm.alpha = [0.1, 1.0]\n"
    text = (mine / "setting.toml").read_text().replace("rounds = 20", "rounds = 2")
    (mine / "sweep.toml").write_text(text + sweep)
    assert feddyn_("sweep", mine / "sweep.toml", "--out", "found", "--workers", 1) == 0
    best = tomllib.loads(Path("found/best.toml").read_text())
    assert best["population"]["file"] == str(mine / "data.csv")
    assert len(best["population"]["sha256"]) == 64
    assert feddyn_("run", "found/best.toml", "--out", "best", "--workers", 1) == 0


@pytest.mark.parametrize(
    ("label", "loss", "outputs"),
    [("ill", "binary-cross-entropy", 1), (["a", "b"], "binary-cross-entropy", 2), ("age", "mse", 1)],
    ids=["two classes", "several labels", "a number"],
)
def test_other_targets_train_with_the_network_that_they_need(
    label: Any, loss: str, outputs: int, mine: Path, feddyn_: Any
) -> None:
    rows = (mine / "data.csv").read_text().splitlines()
    marked = [f"{row},{i % 2},{int('yes' in row)}" for i, row in enumerate(rows[1:])]
    (mine / "data.csv").write_text("\n".join([rows[0] + ",a,b", *marked]))
    text = (mine / "setting.toml").read_text().partition("[target]")[0].replace('metrics = ["model.py:f1"]', "")
    listed = str(label).replace("'", '"') if isinstance(label, list) else f'"{label}"'
    task = '\ntask = "numbers"' if label == "age" else ""
    text = text.replace('label = "ill"', f"label = {listed}{task}").replace(
        "rounds = 20", f'rounds = 2\nloss = "{loss}"'
    )
    (mine / "other.toml").write_text(text)
    assert feddyn_("run", mine / "other.toml", "--workers", 1, "--out", mine / "other") == 0
    run = feddyn.load(mine / "other")
    assert run.setting["model"]["classes"] == outputs
    assert ("accuracy" in run.history[-1]["models"]["all"]) == (loss != "mse")


def test_a_source_of_ones_own_gets_paths_from_its_settings_folder(mine: Path) -> None:
    """A parameter that is a pathlib.Path is looked for beside the setting, and recorded as a whole."""
    (mine / "source.py").write_text(
        "from pathlib import Path\nimport numpy as np\nfrom feddyn import Population\n\n"
        "def make(file: Path, seed: int) -> Population:\n"
        "    x = np.loadtxt(file)\n    return Population.from_arrays(x[:, None], x > 0, np.arange(len(x)) % 4)\n"
    )
    (mine / "numbers.txt").write_text("1\n-1\n2\n-3\n")
    document = read(mine / "setting.toml")
    document["population"] = {"source": "source.py:make", "file": "numbers.txt"}
    del document["target"]
    (named,) = plans(document, folder=mine)
    assert named.plan.population.total == 4
    assert named.plan.setting()["population"]["file"] == str(mine / "numbers.txt")
    assert isinstance(named.plan.model, torch.nn.Module)


def test_a_plain_installation_runs_the_start(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (named,) = plans(read(mine / "setting.toml"), folder=mine)
    assert named.plan.population.total == 6 * 112


def test_what_is_not_there_is_said_with_the_way_out(
    mine: Path, feddyn_: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    setting, here = mine / "setting.toml", Path.cwd()
    assert feddyn_("run", setting, "--set", "population.file=nope.csv") == 2
    assert f"population.file: there is no file nope.csv in {mine} or {here}" in capsys.readouterr().err
    assert feddyn_("run", setting, "--set", 'evaluation.metrics=["model.py:f2"]') == 2
    assert "model.py has no 'f2'; known: Metric, Net, counts, f1" in capsys.readouterr().err
    assert feddyn_("run", setting, "--workers", 1, "--set", "rounds=1", "--out", "run") == 0
    shown = repr(feddyn.load("run"))
    assert shown.startswith("Run(FedDyn, finished, 1 of 1 rounds, f1 (mean of all devices) 0.")
    assert shown.endswith(", run)")
    capsys.readouterr()
    assert feddyn_("evaluate", "run", "--data", "nope.csv") == 2
    assert f"there is no file nope.csv, seen from {here}" in capsys.readouterr().err
    rows = (mine / "data.csv").read_text().splitlines()
    Path("new.csv").write_text("\n".join(row.rpartition(",")[0] for row in rows))
    assert feddyn_("evaluate", "run", "--data", "new.csv") == 2
    said = "has no column 'ill', the label, which figures need: add it; predictions do without, feddyn.load(DIR)"
    assert said in capsys.readouterr().err
    assert len(feddyn.load("run").predict("new.csv")) == len(rows) - 1


@pytest.mark.parametrize("seed", range(4))
def test_a_rare_class_may_be_in_the_test_alone(seed: int, mine: Path, feddyn_: Any) -> None:
    """Whether its one row is drawn for it depends on the seed."""
    heading, first, *rest = (mine / "data.csv").read_text().splitlines()
    (mine / "data.csv").write_text("\n".join([heading, first.rpartition(",")[0] + ",zz", *rest]))
    words = ("--set", "rounds=1", "--set", "population.test=0.5", "--seed", seed)
    assert feddyn_("run", mine / "setting.toml", *words, "--workers", 1) == 0
