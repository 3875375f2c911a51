"""What a solver may ask of a device: its loss, gradients of it, and an order in which to visit its samples."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from feddyn.algorithms.base import Scalar, Vector
from feddyn.batches import Batch, taken
from feddyn.data.population import Samples
from feddyn.data.transforms import Transform
from feddyn.models.flat import Descent, FlatModel
from feddyn.solvers.order import orders

SHORTEST = 1e-7
"""Added to the length of a gradient that is divided by it, which may be 0."""


class Step(NamedTuple):
    """One step of a walk over the data. `batch` is for `gradient`; `alive` masks stacked devices that have finished
    (a column of 1 and 0; None: all go on)."""

    batch: Any
    alive: Scalar | None = None


class StepwiseWork(Protocol):
    """What a solver in steps needs, of one device or of a stack of them that walk in step."""

    @property
    def theta(self) -> Vector:
        """The workspace: gradients are taken at this vector, and solvers change it in place."""

    @property
    def round(self) -> int:
        """Rounds completed before this one, for step sizes that decay."""

    def steps(self, epochs: int | None, steps: int | None, batch_size: int | None) -> Iterator[Step]:
        """Walk over the data in random order: so many passes, or so many steps; batch_size None: all samples a step."""

    def gradient(self, batch: Any) -> Vector:
        """The gradient, at `theta`, of the mean loss over a batch. Valid until the next call."""

    def sharp_gradient(self, batch: Any, radius: float) -> Vector:
        """The gradient of the same batch at the point that is `radius` up the slope from `theta`, which stays."""

    def descent(self, batch: Any) -> Descent:
        """A step along that gradient, which is cheaper than the gradient as a vector; `theta` may move in between."""


class Work:
    """One device at work: its samples `x`, `y` and the model they train; `seed` sets the order of its samples, and
    `effort` is the part of its steps that it gets done.

    `gradients` counts the gradients of single samples that were evaluated.
    """

    def __init__(
        self,
        model: FlatModel,
        x: Batch,
        y: torch.Tensor,
        round: int,
        seed: int,
        transform: Transform | None = None,
        effort: float = 1.0,
    ):
        self.model, self.x, self.y, self.round, self.seed, self.transform = model, x, y, round, seed, transform
        self.theta, self.effort = model.theta, effort
        self.size, self.gradients = len(y), 0
        self._augment = None if transform is None else torch.Generator().manual_seed(seed >> 1)

    def steps(self, epochs: int | None, steps: int | None, batch_size: int | None) -> Iterator[Step]:
        """Walk over the device's samples, each epoch in an order of its own; a batch of None is all of them."""
        left = done(total_steps(self.size, epochs, steps, batch_size), self.effort)
        if batch_size is None or batch_size >= self.size:
            for _ in range(left):
                yield Step(None)
            return
        seeds, epoch = np.array([self.seed], dtype=np.uint64), 0
        while left > 0:
            order = torch.from_numpy(orders(seeds, [self.size], range(epoch, epoch + 1))[0, 0]).to(self.y.device)
            batches = order.split(batch_size)[:left]
            yield from map(Step, batches)
            left, epoch = left - len(batches), epoch + 1

    def gradient(self, batch: torch.Tensor | None = None) -> Vector:
        """The gradient, at `theta`, of the mean loss over some rows (None: all). Valid until the next call."""
        return self.model.gradient(*self._batch(batch))

    def sharp_gradient(self, batch: torch.Tensor | None, radius: float) -> Vector:
        """The gradient at the point that is `radius` up the slope from `theta`; the samples are augmented once."""
        x, y = self._batch(batch)
        self.gradients += y.shape[0]
        return uphill(self.theta, lambda: self.model.gradient(x, y), radius)

    def descent(self, batch: torch.Tensor | None) -> Descent:
        """A step along that gradient; `theta` may move in between."""
        return self.model.descent(*self._batch(batch))

    def _batch(self, rows: torch.Tensor | None) -> Samples:
        """What the model is given of some rows."""
        if rows is None:
            x, y = self.x, self.y
        else:
            x, y = taken(self.x, rows), self.y.index_select(0, rows)
        self.gradients += len(y)
        if self.transform is not None:
            x = self.transform(x, self.theta.dtype, self._augment)
        return x, y

    def loss(self, theta: Vector) -> torch.Tensor:
        """The mean loss over all samples as a differentiable function of a vector."""
        x = self.x if self.transform is None else self.transform(self.x, self.theta.dtype)
        return self.model.loss(self.model.function(theta, x), self.y)


def uphill(theta: Vector, gradient: Callable[[], Vector], radius: float) -> Vector:
    """The gradient at theta + radius * g / ||g||, g being the one at theta, which is moved there and back again."""
    here, g = theta.clone(), gradient()
    theta.addcmul_(g, radius / (torch.linalg.vector_norm(g, dim=-1, keepdim=True) + SHORTEST))
    try:
        return gradient()
    finally:
        theta.copy_(here)


def done(steps: int, effort: float) -> int:
    """How many of so many steps a slow device gets done: at least one."""
    return max(1, int(steps * effort))


def total_steps(size: int, epochs: int | None, steps: int | None, batch_size: int | None) -> int:
    """How many steps a device of `size` samples takes: `steps`, or `epochs` passes of ceil(size / batch_size) each."""
    if steps is not None:
        return steps
    assert epochs is not None
    return epochs * (1 if batch_size is None else -(-size // batch_size))
