"""The command line: what it runs, what it writes, and what it says to bad input."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from safetensors.torch import load_file

from feddyn import cli

SMALL = """
seed = 1
rounds = 6
participation = 0.5
[population]
source = "synthetic"
kind = "type2"
devices = 4
samples = 12
features = 3
classes = 2
[model]
name = "linear"
[solver]
lr = 0.1
epochs = 2
batch_size = 5
weight_decay = 1e-3
"""
COMPARISON = (
    SMALL
    + """
[[compare]]
algorithm = { name = "feddyn", alpha = 0.1 }
[[compare]]
algorithm = { name = "scaffold" }
solver = { steps = 4 }
[[compare]]
algorithm = { name = "fedprox", mu = 0.1 }
[[compare]]
algorithm = { name = "feddyn-onegd", alpha = 5.0 }
[[compare]]
algorithm = { name = "distributed-sgd" }
[[compare]]
algorithm = { name = "centralised" }
[[compare]]
algorithm = { name = "fedsplit", step = 1.0, mean = "all" }
"""
)
SINGLE = SMALL + '[algorithm]\nname = "feddyn"\nalpha = 0.1\n'


MNIST = """
rounds = 2
participation = 1
[population]
source = "mnist"
devices = 50
split = "file"
file = "split.npz"
[model]
name = "mlp"
[solver]
lr = 0.1
epochs = 1
batch_size = 50
[algorithm]
name = "feddyn"
alpha = 0.1
"""
real = pytest.mark.skipif("FEDDYN_DATA" not in os.environ, reason="the real data is not here: FEDDYN_DATA is not set")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of `feddyn WORDS`."""
    monkeypatch.setattr(sys, "argv", ["feddyn", *words])
    try:
        cli.main()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    return 0


def test_a_single_run_and_its_record(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.toml").write_text(SINGLE)
    assert (
        call("run", "my.toml", "--out", "out", "--set", "solver.lr=0.05", "--seed", "3", monkeypatch=monkeypatch) == 0
    )
    names = {path.name for path in Path("out").iterdir()}
    files = {"setting.toml", "rounds.jsonl", "timings.jsonl", "summary.json", "models.safetensors"}
    assert files <= names
    assert {"convergence.png", "table.md"} <= names
    lines = [json.loads(line) for line in Path("out/rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert {"active", "transmitted", "bytes_up", "bytes_down", "gradients", "norms", "models"} <= set(lines[0])
    setting = tomllib.loads(Path("out/setting.toml").read_text())
    assert setting["solver"]["lr"] == 0.05
    assert setting["seed"] == 3
    assert set(load_file("out/models.safetensors")) == {"server", "active", "all", "best"}
    assert "\x1b" not in capsys.readouterr().out


def test_the_setting_alone_repeats_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my.toml").write_text(SINGLE + "[target]\ngap = 0.1\nstop = false\n")
    assert call("run", "my.toml", "--out", "one", monkeypatch=monkeypatch) == 0
    assert call("run", "one/setting.toml", "--out", "two", monkeypatch=monkeypatch) == 0
    for name in ("setting.toml", "rounds.jsonl", "summary.json", "models.safetensors"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes(), name


def test_a_comparison_of_every_method(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.toml").write_text(COMPARISON)
    assert call("run", "my.toml", "--out", "out", "--set", "algorithm.alpha=0.2", monkeypatch=monkeypatch) == 0
    folders = sorted(path.name for path in Path("out").iterdir() if path.is_dir())
    assert folders == ["centralised", "distributed-sgd", "feddyn", "feddynonegd", "fedprox", "fedsplit-all", "scaffold"]
    settings = {name: tomllib.loads(Path("out", name, "setting.toml").read_text()) for name in folders}
    assert settings["feddyn"]["algorithm"] == {"name": "feddyn", "alpha": 0.2}
    assert settings["fedprox"]["algorithm"] == {"name": "fedprox", "mu": 0.1}
    assert settings["scaffold"]["solver"]["steps"] == 4
    assert "epochs" not in settings["scaffold"]["solver"]
    assert settings["feddynonegd"]["solver"] == {"name": "onestep", "weight_decay": 1e-3}
    assert settings["distributed-sgd"]["solver"] == {"name": "onestep", "lr": 0.1, "weight_decay": 1e-3}
    assert settings["centralised"]["population"]["pooled"] is True
    rounds = {name: Path("out", name, "rounds.jsonl").read_text().splitlines() for name in folders}
    schedules = {name: [json.loads(line)["active"] for line in lines] for name, lines in rounds.items()}
    del schedules["centralised"]
    assert len({str(schedule) for schedule in schedules.values()}) == 1
    assert json.loads(rounds["scaffold"][-1])["transmitted"] == 12
    assert json.loads(rounds["feddyn"][-1])["transmitted"] == 6
    assert "SCAFFOLD" in capsys.readouterr().out


def test_settings_of_presets_repeat_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my.toml").write_text(COMPARISON)
    assert call("run", "my.toml", "--out", "out", monkeypatch=monkeypatch) == 0
    for name in ("centralised", "feddynonegd", "fedsplit-all"):
        assert call("run", f"out/{name}/setting.toml", "--out", f"again-{name}", monkeypatch=monkeypatch) == 0
        assert Path("out", name, "rounds.jsonl").read_bytes() == Path(f"again-{name}", "rounds.jsonl").read_bytes()


def test_no_text_of_anybodys_moves_the_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In labels, file names, settings and errors: tables, progress, reports and what is left out of them."""
    label = r"\u001b]0;title\u0007evil"
    text = SMALL.replace("rounds = 6", "rounds = 2")
    for number in (1, 2):
        text += f'[[compare]]\nlabel = "{label} {number}"\nalgorithm = {{ name = "fedavg" }}\n'
    Path("my.toml").write_text(text)
    out = "out\x1b[2J"
    assert call("run", "my.toml", "--out", out, monkeypatch=monkeypatch) == 0
    Path(out, "broken\x1b").mkdir()
    Path(out, "broken\x1b", "setting.toml").write_text("# feddyn run 0\nrounds =")
    assert call("report", out, monkeypatch=monkeypatch) == 0
    assert call("run", "no\x1bsuch.toml", monkeypatch=monkeypatch) == 2
    assert call("run", "my.toml", "--set", "solver.\x1b=1", monkeypatch=monkeypatch) == 2
    assert call("run", "--nosuch\x1b", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    assert r"\x1b]0;title\x07evil 1" in said.out
    assert r"broken\x1b" in said.out
    assert r"no\x1bsuch.toml" in said.err
    assert not {"\x1b", "\x07"} & set(said.out + said.err)
    assert len(said.err.splitlines()) == 3


def test_default_directories_are_never_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my.toml").write_text(SINGLE)
    for _ in range(2):
        assert call("run", "my.toml", monkeypatch=monkeypatch) == 0
    assert len(list(Path("runs").iterdir())) == 2


def test_methods_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("methods", monkeypatch=monkeypatch) == 0
    printed = capsys.readouterr().out
    for word in (
        "feddyn",
        "feddyn-onegd",
        "scaffold",
        "fedavg",
        "fedprox",
        "fedsplit",
        "feddr",
        "feddc",
        "adabest",
        "fedacg",
        "fedavgm",
        "fedadam",
        "fedyogi",
        "distributed-sgd",
        "adamw",
        "momentum",
        "alpha",
        "mu",
    ):
        assert word in printed


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (SINGLE, ["--set", "solver.lrr=1"], "did you mean 'solver.lr'?"),
        (SINGLE, ["--set", "algorithm.mu=1"], "no method here has algorithm.mu"),
        (SINGLE, ["--set", "solver.lr"], "write KEY=VALUE"),
        (SINGLE, ["--set", "algorithm.alpha=0"], "alpha must be a finite number above 0"),
        (SINGLE, ["--set", "algorithm.alpha=-1.0"], "alpha must be a finite number above 0"),
        (SINGLE, ["--set", "algorithm.alpha=big"], "algorithm.alpha must be a number, not 'big'"),
        (SINGLE, ["--set", "algorithm.alpha=nan"], "alpha must be a finite number above 0"),
        (SINGLE, ["--set", "participation=0"], "participation cannot be 0"),
        (SINGLE, ["--set", "participation=0.0"], "participation cannot be 0.0"),
        (SINGLE, ["--set", "participation=1.5"], "participation cannot be 1.5"),
        (SINGLE, ["--set", "participation=10.0"], "participation cannot be 10.0"),
        (SINGLE, ["--set", "participation=true"], "participation cannot be True"),
        (SINGLE, ["--set", "participation=5"], "5 of 4 devices"),
        (SINGLE, ["--set", "participation=[]"], "the schedule has 0 rounds"),
        (SINGLE, ["--set", "participation=[[0],[1]]"], "the schedule has 2 rounds, but 6 are to be run"),
        (SINGLE, ["--set", "participation=[[0],[],[1],[1],[1],[1]]"], "round 2 of the schedule is empty"),
        (SINGLE, ["--set", "participation=[[0],[9],[1],[1],[1],[1]]"], "names device 9"),
        (SINGLE, ["--set", "rounds=0"], "rounds must be a whole number of at least 1"),
        (SINGLE, ["--set", "population.kind=type9"], "population.kind must be one of"),
        (SINGLE, ["--set", "population.samples=0"], "samples must be a whole number of at least 1"),
        (SINGLE, ["--set", "model.features=7"], "the model does not fit the devices' samples"),
        (SINGLE, ["--set", "solver.epochs=1.5"], "solver.epochs must be a whole number"),
        (SINGLE, ["--set", "population.seed=-1"], "seed must be a whole number of at least 0"),
        (SINGLE, ["--set", "model.classes=-1"], "linear: classes must be a whole number of at least 1"),
        (SINGLE.replace('source = "synthetic"', "source = [1]"), [], "population.source [1] is not known"),
        (SINGLE, ["--set", "solver.steps=3"], "these methods go by epochs"),
        (SINGLE, ["--set", "solver.name=exat"], "did you mean 'exact'?"),
        ("needs = 3\n" + SINGLE, [], "exists only in memory (3)"),
        (COMPARISON + '[[compare]]\nlabel = "feddyn"\nalgorithm = { name = "fedavg" }', [], "or nearly so"),
        (COMPARISON + '[[compare]]\nlabel = ".."\nalgorithm = { name = "fedavg" }', [], "neither a letter nor a digit"),
        (COMPARISON + '[[compare]]\nlabel = [1]\nalgorithm = { name = "fedavg" }', [], "a label must be a text"),
        (
            COMPARISON + '[[compare]]\nlabel = "X"\nalgorithm = { name = "feddyn", alpha = -1.0 }',
            [],
            "X: FedDyn: alpha must",
        ),
        (SINGLE, ["--seed", "-1"], "-1 is not in the range"),
        (SINGLE, ["--out", "taken"], "the output directory taken is not empty"),
        (SINGLE, ["--otu", "x"], "No such option"),
        (SINGLE.replace("feddyn", "fedyn"), [], "algorithm.name 'fedyn' is not known; did you mean 'feddyn'?"),
        (
            SINGLE.replace("alpha", "alfa"),
            [],
            "algorithm.alfa is not known for algorithm 'feddyn'; did you mean 'alpha'?",
        ),
        (SINGLE.replace("alpha = 0.1", ""), [], "algorithm.alpha is missing"),
        (SINGLE.replace("[solver]", "[sovler]"), [], "sovler is not known in a setting; did you mean 'solver'?"),
        (SINGLE.replace("rounds = 6", ""), [], "rounds is missing"),
        (SINGLE.replace("rounds = 6", "rounds ="), [], "is not valid TOML"),
        (SMALL, [], "the setting has no method"),
        (COMPARISON + '[algorithm]\nname = "fedavg"', [], "either an [algorithm] or [[compare]]"),
        (SINGLE + '[target]\nmetric = "acuracy"\nvalue = 1.0', [], "target: metric 'acuracy' is not known"),
        (SINGLE + "[target]\ngap = -1", [], "target.gap must be a number above 0"),
        (SINGLE + 'needs = ["model"]', [], "algorithm.needs is not known"),
        ('needs = ["model"]\n' + SINGLE, [], "exists only in memory (model)"),
        (SINGLE + "[evaluation]\nmodels = []", [], "models must be a list out of server, active, all"),
    ],
)
def test_bad_input_gets_one_sentence(
    text: str, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(text)
    Path("taken").mkdir()
    Path("taken/precious").write_text("keep")
    before = sorted(Path().rglob("*"))
    assert call("run", "my.toml", *words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.startswith("feddyn: ")
    assert len(said.strip().splitlines()) == 1
    assert sorted(Path().rglob("*")) == before
    assert Path("taken/precious").read_text() == "keep"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "nowhere.toml"], "there is no settings file nowhere.toml"),
        (["run", "."], "cannot be read"),
        (["rum"], "No such command 'rum'"),
        (["reproduce", "table9"], "'table9' is not a table or figure"),
        (["reproduce", "centralised", "--row", "mnits"], "did you mean 'mnist'?"),
        (["partition", "mnist"], "name a split"),
        (["partition", "mnits", "--iid"], "did you mean 'mnist'?"),
        (["partition", "shakespeare", "--iid"], "shakespeare is no data set of images with classes to split by"),
        (["data", "check", "mnits"], "did you mean 'mnist'?"),
        (["data", "import", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_bad_words_get_one_sentence(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_divergence_keeps_the_record_and_the_other_methods(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step size of 1e30 makes FedDyn explode; SCAFFOLD goes on."""
    two = COMPARISON.split('[[compare]]\nalgorithm = { name = "fedprox"')[0]
    Path("my.toml").write_text(two.replace("alpha = 0.1 }", "alpha = 0.1 }\nsolver = { lr = 1e30 }"))
    assert call("run", "my.toml", "--out", "out", "--set", "rounds=40", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    assert "what usually helps: a smaller lr" in said.err
    assert "round " in said.err
    summary = json.loads(Path("out/feddyn/summary.json").read_text())
    assert summary["status"] == "diverged"
    assert len(Path("out/feddyn/rounds.jsonl").read_text().splitlines()) == summary["rounds"] < 40
    assert json.loads(Path("out/scaffold/summary.json").read_text())["rounds"] == 40


def test_help_does_not_load_torch() -> None:
    code = "import sys; from feddyn import cli; cli.cli.main(['--help'], standalone_mode=False)"
    code += "; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_without_a_file_the_embedded_comparison_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["--set", "rounds=2", "--set", "solver.epochs=1", "--set", "target.gap=1.5"]
    assert call("run", *changes, monkeypatch=monkeypatch) == 0
    printed = capsys.readouterr().out
    for name in ("FedDyn", "SCAFFOLD", "FedAvg", "FedProx", "models transmitted to reach objective"):
        assert name in printed


def test_data_sets_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FEDDYN_DATA", "empty")
    assert call("data", "list", monkeypatch=monkeypatch) == 0
    printed = capsys.readouterr().out
    for name in ("mnist", "fashion-mnist", "emnist-l", "cifar10", "cifar100", "shakespeare"):
        assert name in printed
    assert call("data", "check", "cifar10", monkeypatch=monkeypatch) == 2
    assert "feddyn data fetch cifar10" in capsys.readouterr().err


@real
def test_partitions_are_shown_and_saved(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["partition", "mnist", "--devices", "50", "--dirichlet", "0.3", "--save", "split.npz", "--out", "pictures"]
    assert call(*words, monkeypatch=monkeypatch) == 0
    assert "classes that hold 80%" in capsys.readouterr().out
    names = {path.name for path in Path("pictures").iterdir()}
    assert names == {"table.md", "histograms.png", "devices-dirichlet-0.3.png"}
    Path("my.toml").write_text(MNIST)
    assert call("run", "my.toml", "--out", "out", monkeypatch=monkeypatch) == 0
    setting = tomllib.loads(Path("out/setting.toml").read_text())
    assert setting["population"]["file"] == "split.npz"
    assert setting["population"]["devices"] == 50
    assert call("run", "out/setting.toml", "--out", "again", monkeypatch=monkeypatch) == 0
    assert Path("out/rounds.jsonl").read_bytes() == Path("again/rounds.jsonl").read_bytes()


@real
def test_real_data_checks_out_and_trains(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One epoch of centralised training on MNIST."""
    assert call("data", "check", "mnist", monkeypatch=monkeypatch) == 0
    assert "checksums right" in capsys.readouterr().out
    words = ["reproduce", "centralised", "--row", "mnist", "--rounds", "1", "--out", "out"]
    assert call(*words, monkeypatch=monkeypatch) == 0
    (record,) = Path("out").glob("mnist-centralised-*/rounds.jsonl")
    line = json.loads(record.read_text())
    assert line["models"]["server"]["accuracy"] > 0.95


def test_a_label_is_never_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ('label = "a/../../escaped"', 'label = "x [/b] | y"')
    for label in labels:
        other = '[[compare]]\nalgorithm = { name = "scaffold" }\n'
        Path("my.toml").write_text(f'{SMALL}[[compare]]\n{label}\nalgorithm = {{ name = "fedavg" }}\n{other}')
        assert call("run", "my.toml", "--out", f"out-{len(label)}", monkeypatch=monkeypatch) == 0
    assert {path.name for path in Path().iterdir()} == {"my.toml", *(f"out-{len(label)}" for label in labels)}
    assert (Path(f"out-{len(labels[0])}") / "a-..-..-escaped").is_dir()


def test_another_seed_redraws_the_data_of_a_record_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out", "one", monkeypatch=monkeypatch) == 0
    assert call("run", "one/setting.toml", "--seed", "9", "--out", "two", monkeypatch=monkeypatch) == 0
    setting = tomllib.loads(Path("two/setting.toml").read_text())
    assert (setting["seed"], setting["population"]["seed"]) == (9, 9)
