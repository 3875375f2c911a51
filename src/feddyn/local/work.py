"""What a solver may ask of a device: its loss, gradients of it, and an order in which to visit its samples."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch

from feddyn.algorithms.base import Problem, Scalar, Solution, Vector
from feddyn.models.flat import FlatModel


class Step(NamedTuple):
    """One step of a walk over the data. `batch` is for `Work.gradient`; `alive` masks stacked devices that have
    finished (1 or 0 in a column; None: all go on)."""

    batch: Any
    alive: Scalar | None = None


class Work(ABC):
    """A device at work in one round, or a stack of devices that work in step."""

    theta: Vector
    """The workspace: gradients are taken at this vector, and solvers change it in place."""
    size: int
    """How many samples there are."""
    round: int
    """Rounds completed before this one, for step sizes that decay."""
    gradients: int
    """How many gradients of single samples were evaluated so far."""

    @abstractmethod
    def steps(self, epochs: int | None, steps: int | None, batch_size: int | None) -> Iterator[Step]:
        """Walk over the data in random order: so many passes, or so many steps; batch_size None: all samples a step."""

    @abstractmethod
    def gradient(self, batch: Any = None) -> Vector:
        """The gradient, at `theta`, of the mean loss over a batch (None: all samples). Valid until the next call."""

    @abstractmethod
    def loss(self, theta: Vector) -> torch.Tensor:
        """The mean loss over all samples as a differentiable function of a vector."""


class Solver(Protocol):
    """Anything that solves a problem for a device: a class of ours, or a function of yours.

    It minimises  loss(theta) + weight_decay/2 ||theta||^2 + <tilt, theta> + prox/2 ||theta - center||^2  from `start`.
    """

    def __call__(self, problem: Problem, work: Work, /) -> Solution: ...


class DeviceWork(Work):
    """One device: its samples `x`, `y` and the model they train."""

    def __init__(self, model: FlatModel, x: torch.Tensor, y: torch.Tensor, round: int, generator: torch.Generator):
        self.model, self.x, self.y = model, x, y
        self.theta, self.round, self.generator = model.theta, round, generator
        self.size, self.gradients = len(y), 0

    def steps(self, epochs: int | None, steps: int | None, batch_size: int | None) -> Iterator[Step]:
        left = total_steps(self.size, epochs, steps, batch_size)
        if batch_size is None or batch_size >= self.size:
            yield from [Step(None)] * left
            return
        while left > 0:
            batches = torch.randperm(self.size, generator=self.generator).split(batch_size)[:left]
            yield from map(Step, batches)
            left -= len(batches)

    def gradient(self, batch: torch.Tensor | None = None) -> Vector:
        if batch is None:
            x, y = self.x, self.y
        else:
            x, y = self.x.index_select(0, batch), self.y.index_select(0, batch)
        self.gradients += len(y)
        return self.model.gradient(x, y)

    def loss(self, theta: Vector) -> torch.Tensor:
        return self.model.loss(self.model.function(theta, self.x), self.y)


def total_steps(size: int, epochs: int | None, steps: int | None, batch_size: int | None) -> int:
    """How many steps a device of `size` samples takes: `steps`, or `epochs` passes of ceil(size / batch_size) each."""
    if steps is not None:
        return steps
    assert epochs is not None
    return epochs * (1 if batch_size is None else -(-size // batch_size))
