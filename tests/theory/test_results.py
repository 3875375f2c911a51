"""The points behind docs/results/theory.md are what the command gives."""

import csv
from pathlib import Path

import pytest

from feddyn.theory.verification.survey import ACTIVE, PROBLEMS, SPREADS, THEOREMS, Check, do

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def rows() -> list[dict[str, str]]:
    with (RESULTS / "theory-points.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_printed_point_is_below_its_bound() -> None:
    found = rows()
    assert all(float(r["sum"]) + 3 * float(r["sum error"]) <= float(r["sharp"]) <= float(r["printed"]) for r in found)
    settings = {
        (r["theorem"], r["losses"], float(r["spread"]), 8 / float(r["m/P"])) for r in found if r["how"] == "paths"
    }
    assert settings == {(t, p, s, float(P)) for t in THEOREMS for p in PROBLEMS for s in SPREADS for P in ACTIVE}


@pytest.mark.parametrize(("name", "problem"), [("feddyn-strongly-convex", "logistic"), ("feddyn-convex", "quadratic")])
def test_a_setting_gives_the_printed_points_again(name: str, problem: str) -> None:
    """All devices active: one path, so nothing but the code and rounding is in it."""
    job = Check(name, problem, 1.0, 8, 32, 0)
    result = do(job)
    front = (name, problem, "1", "1", "paths")
    printed = [r for r in rows() if (r["theorem"], r["losses"], r["spread"], r["m/P"], r["how"]) == front]
    assert [int(r["T"]) for r in printed] == [point.T for point in result.measured.points]
    for row, point in zip(printed, result.measured.points, strict=True):
        assert float(row["measured"]) == pytest.approx(point.value, rel=1e-5)
        assert float(row["sharp"]) == pytest.approx(point.sharp, rel=1e-5)
