"""A function or object of one's own as a solver, and what the engine gets to know of it."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.identity import describe
from feddyn.solvers import Solver, as_solver
from feddyn.solvers.base import Batchable


def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
    work.theta.copy_(problem.start)
    return feddyn.Solution(problem.start - 0.1 * problem.penalised_slope(work.gradient(), problem.start), 0.1)


@dataclass(frozen=True)
class Careful:
    """With all that an object may tell of itself."""

    weight_decay: float
    note: str | None = None
    reports_path = False
    remedy = "more care"

    def check(self, problem: feddyn.Problem) -> None:
        if problem.center is None:
            raise feddyn.InputError("Careful: no penalty, no solution")

    def __call__(self, problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        return solve(problem, work)


@pytest.mark.parametrize(
    ("solver", "path", "steps", "batchable"),
    [
        (feddyn.SGD(0.1, epochs=1), True, True, True),
        (feddyn.AdamW(0.1, epochs=1), False, True, True),
        (feddyn.OneStep(), True, False, False),
        (feddyn.Exact(), False, False, False),
        (as_solver(solve), True, False, False),
        (as_solver(Careful(0.1)), False, False, False),
    ],
)
def test_what_the_engine_needs_to_know(solver: Solver, path: bool, steps: bool, batchable: bool) -> None:
    assert (solver.reports_path, solver.in_steps, isinstance(solver, Batchable)) == (path, steps, batchable)
    assert as_solver(solver) is solver


def test_a_plan_wraps_once_and_describes_what_it_was_given(logistic: nn.Module, unbalanced: Stored) -> None:
    careful = Careful(0.2)
    for given, fields in ((solve, {}), (careful, {"weight_decay": 0.2})):
        plan = feddyn.Plan(logistic, unbalanced, feddyn.FedDyn(0.1), given, 3, 1)
        assert plan.solver is given
        assert plan.local_solver is plan.local_solver
        assert plan.setting()["solver"] == {"memory": True, **describe(given), **fields}
        assert plan.local_solver.remedy == getattr(given, "remedy", "smaller steps")
        assert plan.local_solver.weight_decay == fields.get("weight_decay", 0.0)


def test_what_an_object_tells_of_itself_counts(logistic: nn.Module, unbalanced: Stored) -> None:
    def run(method: feddyn.Algorithm) -> feddyn.Run:
        return feddyn.simulate(logistic, unbalanced, method, Careful(0.2), participation=1.0, rounds=1, workers=1)

    with pytest.raises(feddyn.InputError, match="no penalty, no solution"):
        run(feddyn.FedAvg())
    with pytest.raises(feddyn.InputError, match="Scaffold with Careful: the method needs a solver that walks in steps"):
        run(feddyn.Scaffold())
    figures = run(feddyn.FedDyn(1.0)).history[-1]["models"]["server"]
    theta = run(feddyn.FedDyn(1.0)).models["server"]
    assert figures["objective"] - figures["loss"] == pytest.approx(0.1 * float(theta.square().sum()))


def test_the_slope_of_a_problem_is_autograd_of_its_value() -> None:
    problem = feddyn.Problem(torch.zeros(3), torch.randn(3), 0.7, torch.randn(3))
    theta = torch.randn(3, requires_grad=True)
    (slope,) = torch.autograd.grad(problem.penalised(theta.square().sum(), theta), theta)
    assert torch.allclose(slope, problem.penalised_slope(2 * theta, theta))
    bare = feddyn.Problem(torch.zeros(3))
    assert bare.penalised(torch.tensor(2.0), theta) == 2
    assert torch.equal(bare.penalised_slope(theta, theta), theta)
