r"""One full gradient step, the solver of FedDynOneGD (the paper's Algorithm 2) and of distributed SGD.

From `start`, along the gradient of the whole penalised objective over all of the device's samples:

    theta_k = start - step * ( grad f_k(start) + tilt + prox (start - center) ) ,   step = lr, or 1/prox without one

With FedDyn's problem (start = center = theta, tilt = -lambda_k, prox = alpha_k) the default is the paper's
theta_k = theta - (grad L_k(theta) - lambda_k) / alpha_k, after which lambda_k becomes grad L_k(theta). It is stable for
alpha above 1.5 L, L being the smoothness of the losses.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Problem, Scalar, Solution
from feddyn.checks import require_number
from feddyn.errors import InputError
from feddyn.solvers.base import Solver
from feddyn.solvers.work import Work


@final
@dataclass(frozen=True)
class OneStep(Solver):
    """One full gradient step of length `lr`; None: 1/prox, for methods that have a quadratic penalty."""

    lr: Scalar | None = None
    weight_decay: float = 0.0
    remedy = "a smaller lr, or without one a larger penalty (alpha), which makes the step shorter"

    def __post_init__(self) -> None:
        require_number("OneStep", "weight_decay", self.weight_decay, zero=True)
        if self.lr is not None:
            require_number("OneStep", "lr", self.lr)

    def check(self, problem: Problem) -> None:
        """Refuse a method without a penalty, from which the length would follow, before any work starts."""
        if self.lr is None and not isinstance(problem.prox, torch.Tensor) and problem.prox == 0:
            raise InputError("OneStep: without lr its length is 1/prox, but this method has no penalty: give lr")

    def __call__(self, problem: Problem, work: Work) -> Solution:
        self.check(problem)
        start = work.theta.copy_(problem.start)
        slope = problem.penalised_slope(work.gradient() + self.weight_decay * start, start)
        step = 1 / problem.prox if self.lr is None else self.lr
        return Solution(start - step * slope, step)
