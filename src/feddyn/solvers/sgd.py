r"""SGD on a device's problem: the training loop of the paper's experiments.

Every step, on a batch B of the device's samples, for whatever method set the problem:

    v <- momentum * v + g + weight_decay * theta ,   g = grad f_B(theta) + tilt + prox (theta - center)
    theta <- theta - lr_t v

With `clip`, g is scaled to norm `clip` where it is longer, as a whole: the gradient of the penalised objective, weight
decay outside. (The FedDyn authors' code leaves FedDyn's prox * theta outside the clip, which breaks the fixed point
where alpha ||theta|| > clip; the two differ only in steps where the clip is active.)

With `sam` = rho > 0 (sharpness-aware minimisation, Foret et al., ICLR 2021) the batch's gradient is taken rho up its
own slope: grad f_B(theta + rho g1/||g1||), g1 = grad f_B(theta), while tilt, penalty and weight decay are those at
theta. That doubles the gradients. FedDyn with it is what the code and the tables of FedSpeed's authors call FedSpeed
(rho = 0.1, alpha = 0.1); the method that their paper (Sun et al., ICLR 2023) prints has another server.

The step size in round t = 0, 1, ... is  lr_t = lr * lr_decay^t * (1/2)^floor(t / halve_every) * s(t), with schedule s.

v starts at zero every round: a device remembers nothing but what its method says. The gradient of step s is in v with
the factor momentum^(i - s) at each step i from s on, so over n steps

    start - theta = lr_t SUM_{i=1..n} SUM_{s=1..i} momentum^(i - s) d_s ,   d_s = g + weight_decay * theta at step s,

and `path` is the sum of the factors of all d_s: lr_t SUM_{i=1..n} (1 + momentum + ... + momentum^(i - 1)). Where d is
the same at all steps, (start - theta) / path is d, which is what SCAFFOLD's control variates rest on; elsewhere it is
a mean of the d_s with those factors as weights. Without momentum it is the sum of the step sizes, n lr_t.
"""

import math
from dataclasses import dataclass, field
from typing import Any, final

import torch

from feddyn.algorithms.base import Problem, Scalar, Solution, Vector
from feddyn.checks import require_number
from feddyn.errors import InputError
from feddyn.solvers.penalty import Penalty, fitting, like
from feddyn.solvers.stepwise import Stepwise, clip_scale, clipped
from feddyn.solvers.work import StepwiseWork


@final
@dataclass(frozen=True)
class SGD(Stepwise):
    """SGD for a number of passes (`epochs`) or of `steps`; `batch_size` None: full batch; `clip` None: off; `momentum`:
    of the heavy ball, as torch.optim.SGD's; `sam`: how far up the slope gradients are taken."""

    momentum: float = field(default=0.0, metadata={"unsaid": 0.0})
    sam: float = field(default=0.0, metadata={"unsaid": 0.0})

    def __post_init__(self) -> None:
        self.require_sense()
        require_number("SGD", "momentum", self.momentum, zero=True)
        if self.momentum >= 1:
            raise InputError(f"SGD: momentum must be below 1, not {self.momentum}")
        require_number("SGD", "sam", self.sam, zero=True)

    def __call__(self, problem: Problem, work: StepwiseWork) -> Solution:
        theta = work.theta.copy_(problem.start)
        plain = self.clip is None and self.momentum == 0 and self.sam == 0
        penalty = Penalty(problem, self.weight_decay if plain else 0.0, theta)
        velocity = torch.zeros_like(theta) if self.momentum > 0 else None
        factor, walked, decay = 0.0, like(theta, 0.0), fitting(theta, self.weight_decay)
        for batch, step, taken in self.walk(work):
            if velocity is not None:
                g = clipped(penalty.add_slope(self._gradient(work, batch), theta), self.clip)
                velocity.mul_(self.momentum).add_(g.add_(theta, alpha=decay))
                theta.sub_(velocity * step)
            elif not plain:
                g = penalty.add_slope(self._gradient(work, batch), theta)
                self._clipped_step(theta, g, math.inf if self.clip is None else self.clip, step)
            else:
                descend = work.descent(batch)
                penalty.descend(theta, step)
                descend(step)
            factor = self.momentum * factor + 1.0
            walked = walked + factor * taken
        return Solution(theta, like(theta, self.rate(work.round)) * walked)

    def _gradient(self, work: StepwiseWork, batch: Any) -> Vector:
        return work.sharp_gradient(batch, self.sam) if self.sam > 0 else work.gradient(batch)

    def _clipped_step(self, theta: Vector, g: Vector, clip: float, step: Scalar) -> None:
        """theta <- theta - step ( min(1, clip / ||g||) g + weight_decay * theta )"""
        decay, scale = fitting(theta, self.weight_decay), clip_scale(g, clip)
        if scale.numel() > 1 or isinstance(step, torch.Tensor):
            theta.sub_(g.mul_(scale).add_(theta, alpha=decay).mul_(step))
        else:
            theta.sub_(theta, alpha=step * decay).sub_(g, alpha=step * float(scale))
