"""What a newcomer writes first, and the sentence that helps: each of these was met."""

import json
from pathlib import Path

import pytest

from tests.cli.test_run import COMPARISON, SINGLE, call


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (SINGLE, ["--rounds", "3"], "there is no option --rounds: to change the setting, write --set rounds=VALUE"),
        (SINGLE, ["--lr=0.1"], "--set solver.lr=VALUE"),
        (SINGLE, ["--batch-size", "5"], "--set solver.batch_size=VALUE"),
        (SINGLE, ["--otu", "x"], "No such option"),
        (SINGLE, ["--set", "lr=0.1"], "'solver.lr'?"),
        (SINGLE, ["--set", "alpha=0.1"], "no method here has alpha; did you mean 'algorithm.alpha'?"),
        (SINGLE, ["--set", "solver.rounds=3"], "no method here has solver.rounds; did you mean 'rounds'?"),
        (SINGLE, ["--set", "algorithm.mu=0.1"], "known: algorithm.alpha, algorithm.name"),
        (SINGLE, ["--set", "solver.lrr=1"], "did you mean 'solver.lr'?"),
        (
            SINGLE + '[target]\nmetric = "accuracy"\nvalue = 95',
            [],
            "value must be from 0 to 1, as accuracies are, not 95: write 0.95 for 95%",
        ),
        (
            SINGLE + '[target]\nmetric = "accuracy"\nvalue = -1',
            [],
            "value must be from 0 to 1, as accuracies are, not -1",
        ),
    ],
)
def test_the_sentence_points_at_what_was_meant(
    text: str, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(text)
    assert call("run", "my.toml", *words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("population.samples=0", "feddyn: synthetic problem: samples must be"),
        ("population.kind=typ2", "feddyn: population.kind must be"),
        ("rounds=0", "feddyn: rounds must be"),
        ("solver.weight_decay=-1.0", "feddyn: SGD: weight_decay must be"),
        ("algorithm.mu=-1.0", "feddyn: FedProx: FedProx: mu must be"),
    ],
)
def test_what_methods_share_is_blamed_on_none_of_them(
    words: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(COMPARISON)
    assert call("run", "my.toml", "--set", words, monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.startswith(sentence)


@pytest.mark.parametrize(
    ("method", "there", "not_there"),
    [
        ('"fedavg"', "a smaller lr", "alpha"),
        ('"fedprox"\nmu = 0.1', "lr * mu stays", "alpha"),
        ('"feddyn"\nalpha = 0.1', "a larger alpha", "mu"),
        ('"distributed-sgd"', "a smaller lr, or without one", "clip"),
    ],
)
def test_who_diverges_gets_advice_of_its_own(
    method: str, there: str, not_there: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(SINGLE.split("[algorithm]")[0] + f"[algorithm]\nname = {method}\n")
    assert call("run", "my.toml", "--set", "solver.lr=1e30", "--out", "x", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err.split("what usually helps")[1]
    assert there in said
    assert not_there not in said


def test_a_folder_says_what_is_in_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out", "x", monkeypatch=monkeypatch) == 0
    assert call("run", "my.toml", "--out", "x", monkeypatch=monkeypatch) == 2
    assert "the output directory x has the record of a run that is finished: choose another" in capsys.readouterr().err
    summary = Path("x/summary.json")
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "status": "interrupted"}))
    assert call("run", "my.toml", "--out", "x", monkeypatch=monkeypatch) == 2
    assert "has the record of a run already: go on with it (feddyn resume" in capsys.readouterr().err


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HOME", str(Path("home").resolve()))
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out=~/x", monkeypatch=monkeypatch) == 0
    assert (Path("home") / "x" / "summary.json").exists()
    assert not Path("~").exists()
    assert call("run", "my.toml", "--out=~nobody-of-that-name/x", monkeypatch=monkeypatch) == 2
    assert "there is no home directory for ~nobody-of-that-name/x" in capsys.readouterr().err
