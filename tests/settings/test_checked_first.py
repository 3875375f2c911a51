"""A mistake in a setting is found before any data is asked for."""

import sys
from pathlib import Path
from typing import Any

import pytest

from feddyn import cli
from feddyn.data.datasets import sources
from feddyn.errors import InputError

MNIST = """
rounds = 2
participation = 0.5
[population]
source = "mnist"
devices = 5
[model]
name = "mlp"
[algorithm]
name = "feddyn"
alpha = 0.1
[solver]
lr = 0.1
epochs = 1
batch_size = 10
[evaluation]
models = ["all"]
[target]
metric = "accuracy"
value = 0.9
[links]
lost = 0.1
"""
TYPOS = [
    ("rounds = 2", "rounds = 0", "rounds must be a whole number of at least 1, not 0"),
    ("rounds = 2", "rounds = 2\nseeed = 1", "seeed is not known in a setting; did you mean 'seed'?"),
    ("rounds = 2", "rounds = 2\nstack = 0", "stack must be a whole number of at least 1, not 0"),
    ("rounds = 2", 'rounds = 2\nloss = "mze"', "loss 'mze' is not known; did you mean 'mse'?"),
    ("participation = 0.5", "participation = 1.5", "participation cannot be 1.5: "),
    ("participation = 0.5", "participation = 0", "participation cannot be 0: "),
    ("participation = 0.5", "participation = [[0]]", "participation: the schedule has 1 rounds, but 2 are to be run"),
    ("participation = 0.5", "participation = [[0], [-1]]", "participation: round 2 of the schedule names device -1"),
    ("devices = 5", "devises = 5", "population.devises is not known for population 'mnist'; did you mean 'devices'?"),
    ("devices = 5", 'devices = "5"', "population.devices must be a whole number, not '5'"),
    ("devices = 5", 'split = "dirichelt"', "population.split must be one of 'iid'"),
    ("devices = 5", "pooled = 1", "population.pooled must be true or false, not 1"),
    ('"mlp"', '"mpl"', "model.name 'mpl' is not known; did you mean 'mlp'?"),
    ('"mlp"', '"mlp"\nhiden = 3', "model.hiden is not known for model 'mlp'; did you mean 'hidden'?"),
    ('"mlp"', '"mlp"\ndtype = "float3"', "model.dtype 'float3' is not known; did you mean 'float32'?"),
    ('"feddyn"', '"fedyn"', "algorithm.name 'fedyn' is not known; did you mean 'feddyn'?"),
    ('"feddyn"', '"mine.py:Mine"', "algorithm.name: there is no file mine.py in "),
    ("alpha = 0.1", "alhpa = 0.1", "algorithm.alhpa is not known for algorithm 'feddyn'; did you mean 'alpha'?"),
    ("alpha = 0.1", "alpha = -1", "FedDyn: alpha must be a finite number above 0, not -1"),
    ("lr = 0.1", "lr = 0", "SGD: lr must be a finite number above 0, not 0"),
    ("batch_size = 10", "batch_sise = 10", "solver.batch_sise is not known for "),
    ('models = ["all"]', 'models = ["al"]', "evaluation.models must be "),
    ('models = ["all"]', 'models = ["server"]', "the target is for the model 'all': name it in evaluation.models"),
    ('"accuracy"', '"acuracy"', "target: metric 'acuracy' is not known; did you mean 'accuracy'?"),
    ("value = 0.9", "gap = -1", "target.gap must be a number above 0, not -1"),
    ("lost = 0.1", "lost = 1.1", "links: lost is a probability, at most 1, not 1.1"),
]


@pytest.fixture(autouse=True)
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *_: Any) -> None:
        raise InputError(f"{name} would be downloaded")

    monkeypatch.setenv("FEDDYN_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(sources, "fetch", refuse)
    monkeypatch.chdir(tmp_path)


def says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says before it gives up."""
    monkeypatch.setattr(sys, "argv", ["feddyn", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("command", ["run", "alpha", "sweep"])
def test_a_mistake_costs_no_download(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = "[sweep.space]\nsolver.weight_decay = [0.0, 1e-3]\n" if command == "sweep" else ""
    file = Path("my.toml")
    file.write_text(MNIST + sweep)
    assert says(monkeypatch, capsys, command, "my.toml") == "feddyn: mnist would be downloaded"
    for right, wrong, sentence in TYPOS:
        assert right in MNIST
        file.write_text(MNIST.replace(right, wrong) + sweep)
        assert says(monkeypatch, capsys, command, "my.toml").startswith(f"feddyn: {sentence}"), wrong
    assert not Path("data").exists()


def test_a_mistake_in_one_method_of_a_comparison_costs_no_download(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = MNIST.replace('[algorithm]\nname = "feddyn"\nalpha = 0.1\n', "")
    both = '[[compare]]\nalgorithm = { name = "fedavg" }\n[[compare]]\nalgorithm = { name = "fedprox", mu = -1 }\n'
    Path("my.toml").write_text(common + both)
    words = says(monkeypatch, capsys, "run", "my.toml")
    assert words.startswith("feddyn: FedProx: FedProx: mu must be a finite number")
    Path("my.toml").write_text(MNIST)
    words = says(monkeypatch, capsys, "run", "my.toml", "--set", "solver.lr=-1")
    assert words.startswith("feddyn: SGD: lr must be")
    other = ("--set", "population.source=cifar10", "--set", "model.name=cnn")
    assert says(monkeypatch, capsys, "run", "my.toml", *other) == "feddyn: cifar10 would be downloaded"


def test_a_mistake_among_the_values_of_a_search_costs_no_download(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for space, sentence in (
        ("solver.lr = [0.1, -1.0]", "SGD: lr must be a finite number above 0, not -1.0"),
        ("algorithm.alhpa = [0.1]", "sweep.space.algorithm.alhpa: no method here has it; did you mean"),
        ("solver.lr = [0.1]\nalgorithm.alpha = [0.1, 'x']", "algorithm.alpha must be a number, not 'x'"),
    ):
        Path("my.toml").write_text(MNIST + "[sweep.space]\n" + space)
        assert says(monkeypatch, capsys, "sweep", "my.toml").startswith(f"feddyn: {sentence}")


def test_a_mistake_in_what_is_to_be_reproduced_costs_no_download(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "has no row 'mnist-idd'" in says(monkeypatch, capsys, "reproduce", "participation", "--row", "mnist-idd")
    assert "has no method 'fedyn'" in says(monkeypatch, capsys, "reproduce", "participation", "--method", "fedyn")
    assert "has no row 'iidd'" in says(monkeypatch, capsys, "reproduce", "mnist-search", "--row", "iidd")
    assert "would be downloaded" in says(monkeypatch, capsys, "reproduce", "mnist-search", "--row", "iid")
