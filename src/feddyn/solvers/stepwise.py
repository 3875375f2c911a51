r"""What all solvers that take many small steps share: how long a step is, how many there are, and clipping.

The step size in round t = 0, 1, ... is  lr_t = lr * lr_decay^t * (1/2)^floor(t / halve_every) * s(t), where s is the
schedule (1 without one).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import torch

from feddyn.algorithms.base import Scalar, Vector
from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError
from feddyn.solvers.base import Batchable
from feddyn.solvers.penalty import like
from feddyn.solvers.schedules import Schedule
from feddyn.solvers.work import StepwiseWork


@dataclass(frozen=True)
class Stepwise(Batchable):
    """Steps for a number of passes (`epochs`) or so many `steps`; `batch_size` None: full batch; `clip` None: off."""

    lr: Scalar
    epochs: int | None = None
    batch_size: int | None = None
    weight_decay: float = 0.0
    lr_decay: float = 1.0
    clip: float | None = None
    steps: int | None = None
    halve_every: int | None = None
    schedule: Schedule | None = None
    remedy = "a smaller lr, lr_decay below 1, clip"

    def require_sense(self) -> None:
        """Refuse parameters that make no sense."""
        name = type(self).__name__
        require_number(name, "lr", self.lr)
        require_number(name, "lr_decay", self.lr_decay)
        require_number(name, "weight_decay", self.weight_decay, zero=True)
        if self.clip is not None:
            require_number(name, "clip", self.clip)
        counts = {"epochs": self.epochs, "steps": self.steps}
        for count, value in {**counts, "batch_size": self.batch_size, "halve_every": self.halve_every}.items():
            if value is not None:
                require_whole(name, count, value, 1)
        if not isinstance(self.schedule, Schedule | None):
            raise InputError(f"{name}: schedule must be one such as Cosine(rounds=200), not {self.schedule!r}")
        if (self.epochs is None) == (self.steps is None):
            raise InputError(f"{name}: give either epochs (passes over the device's data) or steps, and not both")

    def rate(self, round: int) -> Scalar:
        """The step size in a round, counted from 0."""
        halvings = 0 if self.halve_every is None else round // self.halve_every
        try:
            factor = self.lr_decay**round * 0.5**halvings
            if self.schedule is not None:
                factor *= self._scheduled(self.schedule(round), round)
            return self.lr * factor
        except OverflowError:  # lr_decay is above 1
            return math.inf

    def _scheduled(self, factor: float, round: int) -> float:
        """A schedule may be somebody's own."""
        require_number(f"the schedule {type(self.schedule).__name__}", f"what it gives in round {round + 1}", factor)
        return factor

    def walk(self, work: StepwiseWork) -> Iterator[tuple[Any, Scalar, Scalar]]:
        """The batch of every step, the step size, and whether the step is taken (1; for stacked devices that have
        finished 0, and so is their step size)."""
        rate = like(work.theta, self.rate(work.round))
        for batch, alive in work.steps(self.epochs, self.steps, self.batch_size):
            yield (batch, rate, 1.0) if alive is None else (batch, rate * alive, alive)

    @property
    def numbers(self) -> Mapping[str, Scalar]:
        """The step size may be a column."""
        return {"lr": self.lr}

    def with_numbers(self, numbers: Mapping[str, Scalar]) -> Self:
        """The same solver with another step size."""
        return replace(self, lr=numbers["lr"])


def clip_scale(g: Vector, clip: float) -> torch.Tensor:
    """min(1, clip / ||g||), by which a gradient is scaled so that it is no longer than `clip`."""
    scale: torch.Tensor = clip / torch.linalg.vector_norm(g, dim=-1, keepdim=True)
    return scale.clamp_(max=1)


def clipped(g: Vector, clip: float | None) -> Vector:
    """The gradient, scaled in place to be no longer than `clip`; None: as it is."""
    return g if clip is None else g.mul_(clip_scale(g, clip))
