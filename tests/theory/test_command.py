"""`feddyn theory` and `feddyn alpha`: what they print, write and refuse."""

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from feddyn import cli
from feddyn.theory.verification import survey
from feddyn.theory.verification.survey import Check, Result


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["feddyn", *words])
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_a_theorem_is_measured_tabulated_and_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(survey, "SPREADS", (1.0,))
    words = ["theory", "--theorem", "feddyn-strongly-convex", "--paths", "2", "--out", str(tmp_path / "out")]
    assert command(monkeypatch, *words) == 0
    said = capsys.readouterr().out
    assert "FedDyn, strongly convex losses (Theorem 3, Lemma 8), 8 devices" in said
    assert "8 of 8 settings hold" in said
    for stem in ("feddyn-strongly-convex", "scaling", "lemmas", "identities", "points"):
        assert (tmp_path / "out" / f"{stem}.csv").exists()
    assert (tmp_path / "out" / "theory.pdf").stat().st_size > 1000
    with (tmp_path / "out" / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["m/P"] for row in rows if row["how"] == "paths"} == {"1", "2", "4", "8"}
    assert all(float(row["sum"]) + 3 * float(row["sum error"]) <= float(row["sharp"]) for row in rows)


def test_a_violated_bound_is_named_and_the_exit_code_is_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def wrong(todo: Sequence[Check], workers: int) -> Iterator[tuple[Check, Result]]:
        found = survey.do(Check("feddyn-strongly-convex", "quadratic", 0.0, 4, 2, 0))
        for job in todo:
            yield job, found._replace(suprema={**found.suprema, "progress": 1.5}) if job == todo[3] else found

    monkeypatch.setattr(survey, "survey", wrong)
    assert command(monkeypatch, "theory", "--theorem", "feddyn-strongly-convex", "--out", str(tmp_path)) == 1
    said = capsys.readouterr()
    assert "does not hold: feddyn-strongly-convex, quadratic, spread 0, 1 of 8 active" in said.err
    assert "23 of 24 settings hold" in said.out


def test_alpha_is_suggested_for_a_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command(monkeypatch, "alpha", "--devices", "2") == 0
    said = capsys.readouterr().out
    assert "of 2 tried" in said
    assert "  FedDyn, nonconvex: alpha = " in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["theory", "--theorem", "fedavg"],
            "--theorem fedavg: no theorem of that name; there are feddyn-strongly-convex",
        ),
        (["theory", "--paths", "1"], "1 is not in the range x>=2"),
        (["theory", "--out", __file__], "is a file: choose a directory for the tables"),
        (["alpha", "missing.toml"], "there is no settings file missing.toml"),
    ],
)
def test_bad_words_get_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert command(monkeypatch, *words) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
