r"""SGD on a device's problem: the one training loop of this project.

Every step, on a batch B of the device's samples, for whatever method set the problem:

    theta <- theta - lr_t ( g + weight_decay * theta ) ,   g = grad f_B(theta) + tilt + prox (theta - center)

With `clip`, g is scaled to norm `clip` where it is longer, as a whole: the gradient of the penalised objective, weight
decay outside. (The FedDyn authors' code leaves FedDyn's prox * theta outside the clip, which breaks the fixed point
where alpha ||theta|| > clip; the two differ only in steps where the clip is active.)

The step size in round t = 0, 1, ... is  lr_t = lr * lr_decay^t * (1/2)^floor(t / halve_every).
"""

from dataclasses import dataclass
from functools import partial
from typing import final

import torch

from feddyn.algorithms.base import Problem, Scalar, Solution, Vector
from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError
from feddyn.local.work import Walk


@final
@dataclass(frozen=True)
class SGD:
    """Plain SGD for a number of passes (`epochs`) or of `steps`; `batch_size` None: full batch; `clip` None: off."""

    lr: Scalar
    epochs: int | None = None
    batch_size: int | None = None
    weight_decay: float = 0.0
    lr_decay: float = 1.0
    clip: float | None = None
    steps: int | None = None
    halve_every: int | None = None

    def __post_init__(self) -> None:
        require_number("SGD", "lr", self.lr)
        require_number("SGD", "lr_decay", self.lr_decay)
        require_number("SGD", "weight_decay", self.weight_decay, zero=True)
        if self.clip is not None:
            require_number("SGD", "clip", self.clip)
        for name in ("epochs", "steps", "batch_size", "halve_every"):
            if getattr(self, name) is not None:
                require_whole("SGD", name, getattr(self, name), 1)
        if (self.epochs is None) == (self.steps is None):
            raise InputError("SGD: give either epochs (passes over the device's data) or steps, and not both")

    def __call__(self, problem: Problem, work: Walk) -> Solution:
        theta = work.theta.copy_(problem.start)
        like = partial(torch.as_tensor, dtype=theta.dtype, device=theta.device)
        full, prox, decay = map(like, (self.rate(work.round), problem.prox, self.weight_decay))
        constant = _constant(problem)
        inside = prox if self.clip is not None else prox + decay
        walked: Scalar = 0.0
        for batch, alive in work.steps(self.epochs, self.steps, self.batch_size):
            # into the gradient and not as theta * (1 - lr * prox), whose rounding is the same at every step and adds up
            g = work.gradient(batch).addcmul_(theta, inside)
            if constant is not None:
                g.add_(constant)
            if self.clip is not None:
                norm = torch.linalg.vector_norm(g, dim=-1, keepdim=True)
                g.mul_((self.clip / norm).clamp_(max=1)).addcmul_(theta, decay)
            theta.addcmul_(g, full if alive is None else full * alive, value=-1)
            walked = walked + (1.0 if alive is None else alive)
        return Solution(theta, full * walked)

    def rate(self, round: int) -> Scalar:
        """The step size in a round, counted from 0."""
        halvings = 0 if self.halve_every is None else round // self.halve_every
        return self.lr * (self.lr_decay**round * 0.5**halvings)


def _constant(problem: Problem) -> Vector | None:
    """The part of the penalty's gradient, tilt + prox (theta - center), that does not depend on theta."""
    if problem.center is None:
        return problem.tilt
    pull = -problem.prox * problem.center
    return pull if problem.tilt is None else pull + problem.tilt
