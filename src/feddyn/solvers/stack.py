"""Many devices and many settings of a sweep at work in step, as one batched computation.

The workspace has shape (settings, devices, d). All settings see the same batches, which are those that each device
would draw on its own; a device that has finished waits, masked, for the others.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from feddyn.algorithms.base import Vector
from feddyn.batches import leaves, mapped, taken
from feddyn.data.population import Rows
from feddyn.data.transforms import Transform
from feddyn.errors import InputError
from feddyn.models.flat import Descent, FlatModel
from feddyn.models.stacked import MakeStacked
from feddyn.solvers.order import Seeds, orders
from feddyn.solvers.work import Step, done, total_steps, uphill

GATHERED = 1 << 21
"""Bytes of samples that are gathered at once: enough to hide the cost of gathering, few enough for the cache."""

PLANNED = 1 << 27
"""Samples that devices may visit in a round, over all their steps: the table of them takes some 50 bytes each."""


class StackedWork:
    """Devices that walk in step, each over its own rows and in an order from a seed of its own; `effort` is the part of
    its steps that each gets done (empty: all).

    `gradients` counts the gradients of single samples that were evaluated, in one setting.
    """

    def __init__(
        self,
        model: FlatModel,
        way: MakeStacked,
        settings: int,
        rows: Rows,
        round: int,
        seeds: Seeds,
        transform: Transform | None = None,
        effort: Sequence[float] = (),
    ):
        self.rows, self.round, self.seeds, self.transform, self.effort = rows, round, seeds, transform, effort
        self.theta = model.theta.new_empty(settings, len(seeds), model.size)
        self.stacked = way(self.theta)
        self.gradients = self._in_step = 0

    def steps(self, epochs: int | None, steps: int | None, batch_size: int | None) -> Iterator[Step]:
        """Walk in step: each device over its own samples, in the order that it would take alone."""
        index, valid = self._table(epochs, steps, batch_size)
        self.gradients += int(valid.sum())
        device, dtype = self.rows.y.device, self.theta.dtype
        counts = valid.sum(-1, keepdims=True)
        alive, everyone = counts > 0, (counts > 0).all((1, 2)).tolist()
        weight = torch.from_numpy(valid / np.maximum(counts, 1)).to(device, dtype)
        rows, masks = torch.from_numpy(index).to(device), torch.from_numpy(alive).to(device, dtype)
        a_step = rows.shape[1:].numel() * sum(leaf[:1].nbytes for leaf in leaves(self.rows.x))
        chunk = max(1, GATHERED // a_step)
        for at in range(0, len(rows), chunk):
            part = rows[at : at + chunk]
            shape, x = part.shape, taken(self.rows.x, part.flatten())
            if self.transform is not None:
                x = self.transform(x, dtype)
            x = mapped(partial(torch.unflatten, dim=0, sizes=shape), x)
            batches = self.stacked.prepare(x, self.rows.y[part], weight[at : at + chunk])
            for step, batch in enumerate(batches, at):
                self._in_step = int(counts[step].sum())
                yield Step(batch, None if everyone[step] else masks[step])

    def gradient(self, batch: Any) -> Vector:
        """The gradients, at `theta`, of every device's mean loss over its batch."""
        return self.stacked.gradient(batch)

    def sharp_gradient(self, batch: Any, radius: float) -> Vector:
        """The gradients at the points that are `radius` up each device's slope."""
        self.gradients += self._in_step
        return uphill(self.theta, lambda: self.stacked.gradient(batch), radius)

    def descent(self, batch: Any) -> Descent:
        """A step along the devices' gradients."""
        return self.stacked.descent(batch)

    def _table(
        self, epochs: int | None, steps: int | None, batch_size: int | None
    ) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.bool_]]]:
        """The rows that each device visits in each step, (steps, devices, batch), and which of them count: the same
        batches as those of `Work.steps`."""
        sizes = self.rows.sizes
        width = int(sizes.max()) if batch_size is None else min(batch_size, int(sizes.max()))
        most = max(total_steps(int(size), epochs, steps, width) for size in sizes)
        if most * len(sizes) * width > PLANNED:
            raise InputError(
                f"{most} steps of {width} samples on {len(sizes)} devices cannot be planned at once (at most "
                f"{PLANNED} samples): use fewer epochs or steps a round, or a smaller stack"
            )
        per_epoch = -(-sizes // width)
        lengths = np.full_like(sizes, steps) if steps is not None else (epochs or 0) * per_epoch
        if self.effort:
            lengths = np.array([done(int(n), part) for n, part in zip(lengths, self.effort, strict=True)])
        passes = -(-lengths // per_epoch)
        step = np.arange(int(lengths.max()))[:, None]
        position = (step % per_epoch * width)[..., None] + np.arange(width)
        valid = (position < sizes[:, None]) & (step < lengths)[..., None]
        epoch = np.minimum(step // per_epoch, passes - 1)[..., None]
        sample = np.minimum(position, sizes[:, None] - 1)  # a batch of everything keeps the samples' order
        # devices of about the same size share a table of orders; a small one would be as wide as the largest device's
        shuffled, scale = sizes > width, np.frexp(sizes)[1]
        for size in np.unique(scale[shuffled]):
            (alike,) = np.nonzero(shuffled & (scale == size))
            order = orders(self.seeds[alike], sizes[alike], range(int(passes[alike].max())))
            place = np.arange(len(alike))[:, None]
            sample[:, alike] = order[place, epoch[:, alike], sample[:, alike]]
        return self.rows.starts[:, None] + sample, valid
