"""Metrics that a setting names: top-k, and code outside of the package."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import feddyn
from feddyn.cli import cli

SCORES = """
from feddyn import Metric


def counts(output, y):
    found = output.argmax(1) == 1
    return (found & (y == 1)).sum(), (found & (y != 1)).sum(), (~found & (y == 1)).sum()


f1 = Metric("f1", counts, lambda sums: 2 * sums[0] / max(1, 2 * sums[0] + sums[1] + sums[2]))


def error():
    return Metric("error", lambda output, y: ((output.argmax(1) != y).sum(), len(y)), better="lower")


nothing = 5
"""
SETTING = """
rounds = 6
participation = 0.5
[population]
source = "synthetic"
kind = "type1"
devices = 8
samples = 30
[model]
name = "linear"
[algorithm]
name = "feddyn"
alpha = 0.1
[solver]
lr = 0.1
epochs = 2
batch_size = 10
[evaluation]
metrics = METRICS
[target]
metric = "error"
value = 0.0
"""


def feddyn_says(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    return done.exit_code, done.output + str(done.exception or "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scores.py").write_text(SCORES)
    (tmp_path / "my.toml").write_text(SETTING.replace("METRICS", '["top2", "scores.py:f1", "scores.py:error"]'))
    return tmp_path


def test_they_are_run_recorded_resumed_and_reported(folder: Path) -> None:
    code, words = feddyn_says("run", folder / "my.toml", "--out", folder / "r", "--workers", "1")
    assert code == 0, words
    assert "models transmitted to reach error <= 0" in words
    record = feddyn.load(folder / "r")
    figures = record.evaluated[-1]["models"]["all"]
    assert list(figures) == ["loss", "accuracy", "top2", "f1", "error", "objective"]
    assert figures["error"] == pytest.approx(1 - figures["accuracy"])
    assert record.headline == ("all", "error")
    assert record.better == "lower"
    assert record.setting["evaluation"]["metrics"][1] == {"name": "f1", "better": "higher", "source": "scores.py:f1"}
    (folder / "scores.py").unlink()  # the record has a copy
    assert "is complete" in feddyn_says("resume", folder / "r")[1]
    code, words = feddyn_says("report", folder / "r")
    assert code == 0
    assert "error (mean of all devices)" in words
    assert f" {figures['error']:.4f} " in words
    page = (folder / "r" / "report" / "index.html").read_text()
    assert "models.all.f1" in page


def test_a_search_goes_by_them(folder: Path) -> None:
    text = (folder / "my.toml").read_text().partition("[target]")[0].replace('"top2", "scores.py:f1", ', "")
    (folder / "sweep.toml").write_text(text + '[sweep.space]\n"solver.lr" = [1e-6, 0.3]\n')
    code, words = feddyn_says("sweep", folder / "sweep.toml", "--out", folder / "s")
    assert code == 0, words
    outcomes = [json.loads(line) for line in (folder / "s" / "trials.jsonl").read_text().splitlines()]
    assert {outcome["metric"] for outcome in outcomes} == {"error"}
    assert min(outcomes, key=lambda outcome: float(outcome["value"]))["candidate"] == {"solver.lr": 0.3}
    assert "lr = 0.3" in (folder / "s" / "best.toml").read_text()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ('["top0"]', "evaluation.metrics 'top0' is not known"),
        ('["f1"]', "evaluation.metrics 'f1' is not known"),
        ('"top5"', "must be a list of names"),
        ('["scores.py:f2"]', "has no 'f2'"),
        ('["scores.py:nothing"]', "is no class or function, but a int"),
        ('["scores.py:counts"]', "evaluation.metrics"),
        ('["scores.py:error", "scores.py:error"]', "two metrics 'error'"),
    ],
)
def test_names_that_are_no_metrics_are_refused_in_one_sentence(folder: Path, names: str, words: str) -> None:
    (folder / "my.toml").write_text(SETTING.replace("METRICS", names))
    code, said = feddyn_says("run", folder / "my.toml", "--out", folder / "r")
    assert code == 1
    assert words in said
    assert not (folder / "r").exists()
