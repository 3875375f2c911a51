r"""AdamW (Loshchilov & Hutter, ICLR 2019) on a device's problem, with the arithmetic of torch.optim.AdamW.

Step i = 1, 2, ... of a round, on a batch B of the device's samples, for whatever method set the problem:

    g <- grad f_B(theta) + tilt + prox (theta - center) ,   scaled to norm `clip` where it is longer
    m <- beta_1 m + (1 - beta_1) g ,   v <- beta_2 v + (1 - beta_2) g^2
    theta <- theta - lr_t ( weight_decay * theta + m / (1 - beta_1^i) / ( sqrt(v / (1 - beta_2^i)) + eps ) )

lr_t is that of SGD. The moments m and v start at zero every round: a device remembers nothing but what its method says.

Gradients enter with factors of their own for each coordinate, so there is no path to report, and methods that need one
(SCAFFOLD) are refused.

Weight decay is decoupled from the gradient, so it is not the slope of the weight_decay/2 ||theta||^2 that the reported
objective has: the steps come to rest where g = -weight_decay * theta * sqrt(v), entry by entry, and v itself vanishes
with g where batches are full and old gradients forgotten. To minimise that objective, have it in the loss.
"""

import math
from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Problem, Solution
from feddyn.checks import require_number
from feddyn.errors import InputError
from feddyn.solvers.penalty import Penalty
from feddyn.solvers.stepwise import Stepwise, clipped
from feddyn.solvers.work import StepwiseWork


@final
@dataclass(frozen=True)
class AdamW(Stepwise):
    """AdamW for a number of passes (`epochs`) or of `steps`; `batch_size` None: full batch; `clip` None: off."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    reports_path = False

    def __post_init__(self) -> None:
        self.require_sense()
        require_number("AdamW", "eps", self.eps)
        for beta in self.betas:
            require_number("AdamW", "betas", beta, zero=True)
        if len(self.betas) != 2 or max(self.betas) >= 1:
            raise InputError(f"AdamW: betas must be two numbers below 1, not {self.betas}")
        object.__setattr__(self, "betas", tuple(self.betas))

    def __call__(self, problem: Problem, work: StepwiseWork) -> Solution:
        theta = work.theta.copy_(problem.start)
        penalty = Penalty(problem, 0.0, theta)
        first, second = torch.zeros_like(theta), torch.zeros_like(theta)
        beta1, beta2 = self.betas
        for i, (batch, step, _) in enumerate(self.walk(work), 1):
            g = clipped(penalty.add_slope(work.gradient(batch), theta), self.clip)
            first.lerp_(g, 1 - beta1)
            second.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            size = second.sqrt().div_(math.sqrt(1 - beta2**i)).add_(self.eps)
            theta.sub_(theta * (step * self.weight_decay))
            theta.sub_(first.div(size).mul_(step / (1 - beta1**i)))
        return Solution(theta)
