"""Solvers that are no class of ours: a function of yours, or any object that can be called."""

from typing import final

from feddyn.algorithms.base import Problem, Solution
from feddyn.solvers.base import Solve, Solver
from feddyn.solvers.work import Work


@final
class Own(Solver):
    """A function, or an object that can be called, as a `Solver`.

    It may have a `weight_decay`, which is part of the objective that is reported, a method `check(problem)` that
    refuses what it cannot solve, and `walks = False` if it does not report a path.
    """

    def __init__(self, solve: Solve):
        self.solve = solve
        self.weight_decay = getattr(solve, "weight_decay", 0.0)
        self.reports_path = getattr(solve, "walks", True)

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
