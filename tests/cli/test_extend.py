"""`feddyn resume DIR --set rounds=N`: runs and comparisons that go on after their end."""

import json
from pathlib import Path

import pytest

from tests.cli.test_run import COMPARISON, SINGLE, call

TWO = COMPARISON.split('[[compare]]\nalgorithm = { name = "fedprox"')[0]
FILES = ("setting.toml", "rounds.jsonl", "models.safetensors", "summary.json")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("text", "folders"), [(SINGLE, [""]), (TWO, ["feddyn", "scaffold"])])
def test_more_rounds(text: str, folders: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my.toml").write_text(text)
    assert call("run", "my.toml", "--out", "whole", "--set", "rounds=9", monkeypatch=monkeypatch) == 0
    assert call("run", "my.toml", "--out", "parts", monkeypatch=monkeypatch) == 0
    assert call("resume", "parts", "--set", "rounds=8", monkeypatch=monkeypatch) == 0
    assert call("resume", "parts", "--set", "rounds=9", monkeypatch=monkeypatch) == 0
    assert call("resume", "parts", monkeypatch=monkeypatch) == 0
    for folder in folders:
        for name in FILES:
            assert Path("parts", folder, name).read_bytes() == Path("whole", folder, name).read_bytes()


def test_the_past_stays(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.toml").write_text(TWO)
    assert call("run", "my.toml", "--out", "out", "--keep", "0", monkeypatch=monkeypatch) == 0
    assert call("resume", "out", monkeypatch=monkeypatch) == 0
    assert "nothing to do (more rounds: --set rounds=N)" in capsys.readouterr().out
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    for words, sentence in (
        ("solver.lr=0.2", "solver.lr was 0.1 when it was begun, and is 0.2 now"),
        ("rounds=3", "has 6 rounds already: rounds cannot be 3"),
        ("rounds=9", "no whole checkpoint to which rounds could be added"),
        ("rounds=0", "rounds must be a whole number"),
    ):
        assert call("resume", "out", "--set", words, monkeypatch=monkeypatch) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert len(said.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


def test_patience_in_a_setting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.toml").write_text(SINGLE + "[patience]\nrounds = 2\ngain = 100.0\n")
    assert call("run", "my.toml", "--out", "out", monkeypatch=monkeypatch) == 0
    summary = json.loads(Path("out/summary.json").read_text())
    assert (summary["status"], summary["rounds"]) == ("no longer improving", 2)
    assert set(summary["best"]) == {"round", "model", "objective"}
    assert call("run", "out/setting.toml", "--out", "again", monkeypatch=monkeypatch) == 0
    for name in FILES:
        assert Path("again", name).read_bytes() == Path("out", name).read_bytes()
    assert call("resume", "out", "--set", "patience.rounds=4", monkeypatch=monkeypatch) == 0
    assert json.loads(Path("out/summary.json").read_text())["rounds"] == 4
