"""Solvers that are no class of ours: a function of yours, or any object that can be called."""

from typing import final

from feddyn.algorithms.base import Problem, Solution
from feddyn.solvers.base import Solve, Solver
from feddyn.solvers.work import Work


@final
class Own(Solver):
    """A function, or an object that can be called, as a `Solver`.

    It may have what a `Solver` has, under the same names: `weight_decay`, `reports_path`, `in_steps`, `remedy`, and a
    method `check(problem)`.
    """

    def __init__(self, solve: Solve):
        self.solve = solve
        for name in ("weight_decay", "reports_path", "in_steps", "remedy"):
            setattr(self, name, getattr(solve, name, getattr(Solver, name)))

    @property
    def name(self) -> str:
        """The name of the function, or of the object's class."""
        return str(getattr(self.solve, "__name__", type(self.solve).__name__))

    def check(self, problem: Problem) -> None:
        """The function's own check, if it has one."""
        if check := getattr(self.solve, "check", None):
            check(problem)

    def __call__(self, problem: Problem, work: Work) -> Solution:
        return self.solve(problem, work)


def as_solver(solve: Solve) -> Solver:
    """A solver as it is; anything else that can be called as one."""
    return solve if isinstance(solve, Solver) else Own(solve)
