r"""The exact solution of a convex problem, by Newton's method.

With F(theta) = f_k(theta) + weight_decay/2 ||theta||^2 + <tilt, theta> + prox/2 ||theta - center||^2, iterate

    theta <- theta - s * [F''(theta)]^{-1} F'(theta) ,   s halved from 1 until ||F'|| falls

until ||F'(theta)|| <= tolerance. The merit is the gradient norm and not F, whose decrease drowns in rounding long
before 1e-12. In float64 the last steps double the digits, so 1e-12 costs little more than 1e-6. The Hessian is dense:
for models of up to a few thousand parameters.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch.func import grad, jacrev

from feddyn.algorithms.base import Problem, Solution, Vector
from feddyn.checks import require_number, require_whole
from feddyn.errors import FeddynError, InputError
from feddyn.solvers.base import Solver
from feddyn.solvers.work import Work

LARGEST = 5_000
HALVINGS = 40
DECREASE = 1e-4


@final
@dataclass(frozen=True)
class Exact(Solver):
    """Newton's method to a gradient norm of `tolerance`, for convex problems in float64."""

    tolerance: float = 1e-12
    weight_decay: float = 0.0
    iterations: int = 100
    reports_path = False

    def __post_init__(self) -> None:
        require_number("Exact", "tolerance", self.tolerance)
        require_number("Exact", "weight_decay", self.weight_decay, zero=True)
        require_whole("Exact", "iterations", self.iterations, 1)

    def check(self, problem: Problem) -> None:
        """Refuse what cannot be solved, before any work starts."""
        if problem.start.dim() != 1 or problem.start.numel() > LARGEST:
            shape = tuple(problem.start.shape)
            raise InputError(f"Exact: solves one model of at most {LARGEST} parameters, not {shape}; use SGD")
        if problem.start.dtype != torch.float64:
            raise InputError(
                "Exact: needs float64 to reach its tolerance: model.double(), or in a setting model.dtype = 'float64'"
            )

    def __call__(self, problem: Problem, work: Work) -> Solution:
        self.check(problem)

        def objective(theta: Vector) -> torch.Tensor:
            value = work.loss(theta) + self.weight_decay / 2 * theta.dot(theta)
            return problem.penalised(value, theta)

        slope, curvature = grad(objective), jacrev(grad(objective))
        theta, g = problem.start, slope(problem.start)
        for left in range(self.iterations, -1, -1):
            work.gradients += work.size
            if g.norm() <= self.tolerance:
                return Solution(theta)
            if not left:
                break
            try:
                newton = torch.linalg.solve(curvature(theta), g)
            except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
                raise FeddynError(
                    "Exact: the curvature of a device's problem is singular in float64, so that Newton's method has no "
                    "step: try weight_decay > 0, or a larger penalty"
                ) from None
            for halvings in range(HALVINGS):
                trial = theta - 0.5**halvings * newton
                after = slope(trial)
                if after.norm() <= (1 - DECREASE * 0.5**halvings) * g.norm():
                    break
            theta, g = trial, after
        raise FeddynError(
            f"Exact: the gradient norm is still {g.norm():.1e} after {self.iterations} Newton steps, above the "
            f"tolerance of {self.tolerance:.0e}; is the problem convex (try weight_decay > 0)?"
        )
