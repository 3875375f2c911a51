r"""SGD on a device's problem: the one training loop of this project.

Every step, on a batch B of the device's samples, for whatever method set the problem:

    theta <- theta - lr_t ( g + weight_decay * theta ) ,   g = grad f_B(theta) + tilt + prox (theta - center)

With `clip`, g is scaled to norm `clip` where it is longer, as a whole: the gradient of the penalised objective, weight
decay outside. (The FedDyn authors' code leaves FedDyn's prox * theta outside the clip, which breaks the fixed point
where alpha ||theta|| > clip; the two differ only in steps where the clip is active.)

The step size in round t = 0, 1, ... is  lr_t = lr * lr_decay^t * (1/2)^floor(t / halve_every).
"""

import math
from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Problem, Scalar, Solution, Vector
from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError
from feddyn.solvers.work import Walk


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
        rate = _like(theta, self.rate(work.round))
        penalty = _Penalty(problem, 0.0 if self.clip is not None else self.weight_decay, theta)
        walked: Scalar = 0.0
        for batch, alive in work.steps(self.epochs, self.steps, self.batch_size):
            step = rate if alive is None else rate * alive
            if self.clip is None:
                descend = work.descent(batch)
                penalty.descend(theta, step)
                descend(step)
            else:
                self._clipped_step(theta, penalty.add_slope(work.gradient(batch), theta), self.clip, step)
            walked = walked + (1.0 if alive is None else alive)
        return Solution(theta, rate * walked)

    def _clipped_step(self, theta: Vector, g: Vector, clip: float, step: Scalar) -> None:
        """theta <- theta - step ( min(1, clip / ||g||) g + weight_decay * theta )"""
        decay = _fitting(theta, self.weight_decay)
        scale = (clip / torch.linalg.vector_norm(g, dim=-1, keepdim=True)).clamp_(max=1)
        if scale.numel() > 1 or isinstance(step, torch.Tensor):
            theta.sub_(g.mul_(scale).add_(theta, alpha=decay).mul_(step))
        else:
            theta.sub_(theta, alpha=step * decay).sub_(g, alpha=step * float(scale))

    def rate(self, round: int) -> Scalar:
        """The step size in a round, counted from 0."""
        halvings = 0 if self.halve_every is None else round // self.halve_every
        try:
            return self.lr * (self.lr_decay**round * 0.5**halvings)
        except OverflowError:  # lr_decay is above 1
            return math.inf


class _Penalty:
    """The slope of the penalty and of the weight decay, prox (theta - center) + tilt + decay * theta: a multiple of
    theta, and a constant."""

    def __init__(self, problem: Problem, decay: float, theta: Vector):
        self.factor = _like(theta, problem.prox + decay)
        self.constant = problem.tilt
        if problem.center is not None:
            pull = -problem.prox * problem.center
            self.constant = pull if problem.tilt is None else pull + problem.tilt
        self.minimum: Vector | None = None
        if self.constant is not None and not isinstance(self.factor, torch.Tensor) and self.factor > 0:
            self.minimum = self.constant / -self.factor

    def add_slope(self, g: Vector, theta: Vector) -> Vector:
        """The slope at theta, added to g in place."""
        if isinstance(self.factor, torch.Tensor):
            g.addcmul_(theta, self.factor)
        elif self.factor > 0:
            g.add_(theta, alpha=self.factor)
        return g if self.constant is None else g.add_(self.constant)

    def descend(self, theta: Vector, step: Scalar) -> None:
        """theta <- theta - step * slope, in one pass where there is one device.

        Never as theta * (1 - step * factor): the rounding of that number is the same at every step and adds up.
        """
        if isinstance(step, torch.Tensor) or isinstance(self.factor, torch.Tensor):
            theta.sub_(self.add_slope(torch.zeros_like(theta), theta).mul_(step))
        elif self.minimum is not None:
            theta.lerp_(self.minimum, step * self.factor)
        elif self.constant is not None:
            theta.sub_(self.constant, alpha=step)
        elif self.factor > 0:
            theta.sub_(theta, alpha=step * self.factor)


def _like(theta: Vector, number: Scalar) -> Scalar:
    """A column in the type of theta; a plain number as it is, where it fits."""
    return number.to(theta) if isinstance(number, torch.Tensor) else _fitting(theta, number)


def _fitting(theta: Vector, number: float) -> float:
    """Infinity in the place of a number of which a product with another one might be beyond theta's type, which torch
    refuses: so the device diverges, and is found to."""
    return float(number) if number < torch.finfo(theta.dtype).max ** 0.5 else math.inf
