"""Many devices and many settings of a sweep at work in step, as one batched computation.

The workspace has shape (settings, devices, d). All settings see the same batches, which are those that each device
would draw on its own; a device that has finished waits, masked, for the others.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from feddyn.algorithms.base import Vector
from feddyn.local.work import Step, total_steps
from feddyn.models.stacked import Stacked

CHUNK = 64
"""Steps whose samples are gathered at once: enough to hide the cost of gathering, few enough for the cache."""


class Cohort:
    """Devices that hold rows offsets[k] to offsets[k] + sizes[k] of `x` and `y`, each with a generator of its own."""

    def __init__(
        self,
        stacked: Stacked,
        settings: int,
        x: torch.Tensor,
        y: torch.Tensor,
        offsets: Sequence[int],
        sizes: Sequence[int],
        round: int,
        generators: Sequence[torch.Generator],
    ):
        self.stacked, self.x, self.y = stacked, x, y
        self.offsets, self.sizes, self.round, self.generators = offsets, sizes, round, generators
        self.theta = stacked.model.theta.new_empty(settings, len(sizes), stacked.model.size)

    def steps(self, epochs: int | None, steps: int | None, batch_size: int | None) -> Iterator[Step]:
        """Walk in step: each device over its own samples, in the order that it would take alone."""
        lengths = [total_steps(size, epochs, steps, batch_size) for size in self.sizes]
        width = max(self.sizes) if batch_size is None else min(batch_size, max(self.sizes))
        walks = zip(self.offsets, self.sizes, lengths, self.generators, strict=True)
        tables = [_table(*walk, width, max(lengths)) for walk in walks]
        rows = torch.stack(tables, dim=1).to(self.x.device)
        valid = rows >= 0
        weight = valid.to(self.theta.dtype) / valid.sum(-1, keepdim=True).clamp(min=1)
        alive = valid.any(-1, keepdim=True).to(self.theta.dtype)
        everyone = alive.bool().flatten(1).all(1).tolist()
        for at in range(0, len(rows), CHUNK):
            part = slice(at, at + CHUNK)
            index = rows[part].clamp(min=0)
            x = self.x.index_select(0, index.flatten()).unflatten(0, index.shape)
            batches = self.stacked.prepare(x, self.y[index], weight[part], self.theta)
            for batch, mask, all_alive in zip(batches, alive[part], everyone[part], strict=True):
                yield Step(batch, None if all_alive else mask)

    def gradient(self, batch: Any) -> Vector:
        """The gradients, at `theta`, of every device's mean loss over its batch."""
        return self.stacked.gradient(self.theta, batch)


def _table(offset: int, size: int, length: int, generator: torch.Generator, width: int, total: int) -> torch.Tensor:
    """The rows that a device visits, (total, width), with -1 where it has none: the same batches as `Work.steps`."""
    if width >= size:
        batches = torch.arange(size).expand(length, size)
    else:
        per_epoch = -(-size // width)
        epochs = [torch.randperm(size, generator=generator) for _ in range(-(-length // per_epoch))]
        whole = pad(torch.stack(epochs), (0, per_epoch * width - size), value=-1 - offset)
        batches = whole.reshape(-1, width)[:length]
    return pad(batches + offset, (0, width - batches.shape[1], 0, total - length), value=-1)
