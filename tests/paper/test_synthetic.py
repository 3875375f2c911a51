"""The paper's synthetic grid."""

import math

import pytest
import torch

import feddyn
from feddyn.data.datasets.synthetic import KINDS
from feddyn.paper import published, synthetic
from feddyn.paper.catalogue import COLUMNS
from feddyn.reports.synthetic import tables
from feddyn.runs.optimum import optimum


def test_the_grid_is_the_papers() -> None:
    """3 alphas x 2 lrs x 3 epochs, 2 mus x 2 x 3, 2 x 3 for FedAvg, and 2 x 3 K for SCAFFOLD."""
    cells = synthetic.grid()
    count = {method: sum(cell.method == method for cell in cells) for method in COLUMNS}
    assert count == {"feddyn": 18, "scaffold": 6, "fedavg": 6, "fedprox": 12}
    assert len(set(cells)) == 42
    assert {cell.lr for cell in cells} == {1.0, 0.1}
    assert {cell.parameter for cell in cells if cell.method == "feddyn"} == {0.1, 0.01, 0.001}
    assert {cell.parameter for cell in cells if cell.method == "fedprox"} == {0.01, 0.0001}
    assert {cell.length for cell in cells if cell.method == "scaffold"} == {20, 200, 1000}
    assert {cell.length for cell in cells if cell.method != "scaffold"} == {1, 10, 50}
    assert (synthetic.BATCH, synthetic.WEIGHT_DECAY, synthetic.PARTICIPATION) == (10, 1e-5, 0.1)


def test_jobs_cover_the_grid_once() -> None:
    """Where devices are equal, K steps are as long as the epochs; where they are not, SCAFFOLD has jobs of its own."""
    todo = synthetic.jobs([0, 1], rounds=3)
    for kind in KINDS:
        for seed in (0, 1):
            mine = [job for job in todo if job.kind == kind and job.seed == seed]
            assert sorted(map(repr, (cell for job in mine for cell in job.cells))) == sorted(
                map(repr, synthetic.grid())
            )
            assert len(mine) == (6 if kind == "type3" else 3)


def test_a_job_is_the_run_of_each_setting() -> None:
    """Every method of a job against a run of that setting alone, in float32."""
    job = next(job for job in synthetic.jobs([2], rounds=3, kinds=["type3"]) if job.cells[0].length == 1)
    population = feddyn.synthetic("type3", seed=2)
    for curve in synthetic.train(job):
        cell = curve.cell
        algorithm: feddyn.Algorithm = feddyn.FedAvg()
        if cell.parameter is not None:
            algorithm = (feddyn.FedDyn if cell.method == "feddyn" else feddyn.FedProx)(cell.parameter)
        solver = feddyn.SGD(cell.lr, epochs=cell.length, batch_size=10, weight_decay=1e-5)
        model = torch.nn.Linear(30, 5)
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        run = feddyn.simulate(model, population, algorithm, solver, participation=0.1, rounds=3, seed=2)
        expected = [line["models"]["all"]["objective"] for line in run.history]
        assert curve.objectives == pytest.approx(expected, rel=1e-4)


def test_the_optimum_is_below_what_training_reaches() -> None:
    """And a model moved off it in any direction is worse: the gradient there is zero to 1e-10 by the solver's test."""
    population = feddyn.synthetic("homogeneous", devices=4, samples=50, features=5, classes=3)
    best = optimum(torch.nn.Linear(5, 3), population, 1e-3)
    sgd = feddyn.SGD(0.5, epochs=3000, weight_decay=1e-3)
    run = feddyn.simulate(torch.nn.Linear(5, 3), population.pooled(), feddyn.FedAvg(), sgd, participation=1, rounds=1)
    reached = run.history[-1]["models"]["server"]["objective"]
    assert best < reached + 1e-6
    assert reached - best < 1e-4


def curve(method: str, objectives: list[float], lr: float = 1.0, seed: int = 0) -> synthetic.Curve:
    parameter = 0.1 if method in ("feddyn", "fedprox") else None
    return synthetic.Curve("type1", seed, synthetic.Cell(method, lr, 10, parameter), objectives)


def test_the_table_picks_the_best_setting_and_counts_models() -> None:
    """Optimum 1.5: targets 1.5717 (the paper's), 1.52 and 1.51. SCAFFOLD's rounds count twice."""
    curves = [
        curve("feddyn", [1.6, 1.55, 1.505, 1.5]),
        curve("feddyn", [1.6, 1.6, math.nan, math.nan], lr=0.1),
        curve("scaffold", [1.6, 1.515, 1.515, 1.505]),
        curve("fedavg", [1.6, 1.56, 1.55, 1.55]),
        curve("fedprox", [1.57, 1.56, 1.505, 1.55]),
    ]
    table, settings = tables(curves, {("type1", 0): 1.5}, published.rows("synthetic"), rounds=4)
    assert [row[2:] for row in table.rows] == [
        ["2", "17", "4 (2.0x)", "88 (5.2x)", "2 (1.0x)", "20 (1.2x)", "1 (0.5x)", "18 (1.1x)"],
        ["3", "", "4 (1.3x)", "", "4+ (>1.3x)", "", "3 (1.0x)", ""],
        ["3", "", "8 (2.7x)", "", "4+ (>1.3x)", "", "3 (1.0x)", ""],
    ]
    assert settings.rows[1][2:] == ["lr 1, 10 epochs, alpha 0.1", "lr 1, K 10", "-", "lr 1, 10 epochs, mu 0.1"]
    assert table.notes[-1].startswith("FedDyn alone needs the fewest in 0 of 3 rows")  # two are ties with FedProx


def test_the_table_over_several_draws_and_an_unreachable_target() -> None:
    curves = [curve(method, [2.0, 1.6], seed=seed) for method in COLUMNS for seed in (0, 1)]
    table, _ = tables(curves, {("type1", 0): 1.59, ("type1", 1): 1.585}, published.rows("synthetic"), rounds=2)
    assert table.rows[0][2:4] == ["below the optimum", "17"]
    assert "in 0 of 1 rows" in table.notes[-1]
    assert table.rows[1][2:5] == ["2.0 ± 0.0 (2 to 2)", "", "4.0 ± 0.0 (4 to 4) (2.0x)"]
    assert table.rows[2][2] == "2, 1 at 2+"


def test_the_papers_numbers_are_all_there() -> None:
    assert [row.feddyn for row in published.rows("synthetic")] == ["32", "17", "150", "34"]
    assert (
        sum(
            len(published.rows(name))
            for name in ("devices", "participation", "unbalanced", "participation-1pct", "synthetic")
        )
        == 112
    )
