"""Evaluating models: loss, metrics and, on training data, the objective that is minimised."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

import torch

from feddyn.algorithms.base import Vector
from feddyn.batches import Batch, form, joined, leaves, split, taken
from feddyn.data.population import Population
from feddyn.data.transforms import Transform
from feddyn.errors import InputError
from feddyn.metrics import Figures, Metric, natural, ratio
from feddyn.models.flat import FlatModel
from feddyn.origin import telling, told
from feddyn.round.rehearsal import averages, telling_rows

Part: TypeAlias = list[float]
"""The sums of a batch of samples: the loss, how many samples, then those of each metric."""
CHUNK = 1 << 18
"""Numbers in a batch of samples: large enough to keep a core busy, small enough for its cache."""
LEAST, MOST = 100, 1000
"""Samples in a batch, whatever their size: images of CIFAR take a quarter longer each in batches of 200 and more."""
EMBEDDED = 16
"""Numbers that a whole number of a sample counts for, as models embed it: characters of Shakespeare take half as long
again in batches of 1000 as in those of 200."""


def batch_size(sample: Batch) -> int:
    """How many samples like this one, as the model takes it, go through the model at once."""
    numbers = sum(leaf.numel() * (1 if leaf.is_floating_point() else EMBEDDED) for leaf in leaves(sample))
    return min(MOST, max(LEAST, CHUNK // max(numbers, 1)))


class Evaluator:
    """Evaluates vectors on the test set, or on the training data where there is none, chunk by chunk.

    Chunks are the same whoever evaluates them, and are added up in order, so that figures do not depend on it. A loss
    that is not the plain mean over samples (one with class weights divides by their sum) gets the outputs of all
    samples at once: then there is one chunk. The chunks from `chunks` on are the devices' own samples. `transform` is
    what is done to raw samples where the population does not say.
    """

    def __init__(
        self,
        model: FlatModel,
        population: Population,
        weight_decay: float,
        metrics: Sequence[Metric] = (),
        transform: Transform | None = None,
    ):
        self.model, self.population, self._transform = model, population, population.transform or transform
        self.x, self.y = population.evaluated
        self._batch = batch_size(self._input(taken(self.x, slice(1))))
        self.weight_decay = weight_decay if population.test is None else None
        self.metrics, plain_mean = self._try_out(metrics)
        self.size = self._batch if plain_mean else len(self.y)
        self.chunks = -(-len(self.y) // self.size)

    @property
    def names(self) -> list[str]:
        """The names of all figures, in their order."""
        objective = [] if self.weight_decay is None else ["objective"]
        return ["loss", *(metric.name for metric, _ in self.metrics), *objective]

    @property
    def width(self) -> int:
        """How many sums a part has."""
        return 2 + sum(count for _, count in self.metrics)

    def chunk(self, theta: Vector, number: int) -> Part:
        """The sums over a chunk of the samples."""
        own = number - self.chunks
        device = f"device {self.population.name(own)}" if own >= 0 else f"samples from {number * self.size} on"
        with telling(f"evaluating the model on {device} failed"):
            return self._chunk(theta, number)

    @torch.inference_mode()
    def _chunk(self, theta: Vector, number: int) -> Part:
        self.model.theta.copy_(theta)
        self.model.module.eval()
        if number < self.chunks:
            rows = slice(number * self.size, (number + 1) * self.size)
            x, y = taken(self.x, rows), self.y[rows]
        else:
            x, y = self.population.samples(number - self.chunks)
        output = joined([self._output(batch) for batch in split(x, self._batch)])
        part = [float(self.model.loss(output, y)) * len(y), float(len(y))]
        for metric, count in self.metrics:
            if len(sums := metric.batch(output, y)) != count:
                raise InputError(
                    f"the metric {metric.name} gives {count} sums of some samples and {len(sums)} of others"
                )
            part += sums
        return part

    def figures(self, theta: Vector, parts: Sequence[Part], gaps: bool = False) -> Figures:
        """The figures of a model from the sums of its chunks. Where a metric has none it is refused or, with `gaps`,
        NaN: a device may have nobody whom it is about. So is then a loss beyond all numbers."""
        totals = [sum(column) for column in zip(*parts, strict=True)]
        figures, at = {"loss": ratio(totals[:2])}, 2
        if gaps and not math.isfinite(figures["loss"]):
            figures["loss"] = math.nan
        gaps = gaps or not math.isfinite(figures["loss"])  # the run has diverged, whatever its metrics make of that
        for metric, count in self.metrics:
            figures[metric.name] = finished(metric, totals[at : at + count], gaps)
            at += count
        if self.weight_decay is not None:
            figures["objective"] = figures["loss"] + self.weight_decay / 2 * float(theta.double().square().sum())
        return figures

    def _input(self, x: Batch) -> Batch:
        return x if self._transform is None else self._transform(x, self.model.theta.dtype)

    def _output(self, x: Batch) -> Batch:
        return self.model(self._input(x))

    @torch.inference_mode()
    def _try_out(self, metrics: Sequence[Metric]) -> tuple[list[tuple[Metric, int]], bool]:
        """The metrics that there are for this model and data, with the number of their sums, and whether the loss is a
        plain mean over samples. This is asked away from the initial model: one that starts at zero has the same loss
        everywhere, under which weights do not show."""
        rows, initial = telling_rows(self.x, self.y), self.model.theta.clone()
        noise = torch.randn(initial.shape, generator=torch.Generator().manual_seed(0), dtype=initial.dtype)
        self.model.theta.add_(noise.to(initial), alpha=0.1)
        self.model.module.eval()
        output, y = self._output(taken(self.x, rows)), self.y[rows]
        self.model.theta.copy_(initial)
        own = {metric.name for metric in metrics}
        found = [metric for metric in natural(output, self.y, self.model.loss) if metric.name not in own]
        counted = [(metric, _count(metric, output, y)) for metric in (*found, *metrics)]
        return counted, averages(self.model.loss, output, y)


def _count(metric: Metric, output: Batch, y: torch.Tensor) -> int:
    """How many sums a metric has; one that does not work on a few samples is refused."""
    try:
        sums = metric.batch(output, y)
        with suppress(ZeroDivisionError):  # a few samples may have nothing to divide by
            float(metric.finish(sums))
    except InputError:
        raise
    except Exception as error:  # it is somebody's own function
        raise InputError(
            f"the metric {metric.name} does not work on outputs of shape {form(output, 0)} and targets {form(y, 0)}: "
            f"{told(error)}"
        ) from error
    return len(sums)


def finished(metric: Metric, sums: Sequence[float], gaps: bool) -> float:
    """The figure of a metric, which its own function may not be able to give: NaN where there may be gaps."""
    try:
        figure = float(metric.finish(sums))
        if math.isfinite(figure):
            return figure
        why = f"it is {figure}"
    except ZeroDivisionError as error:
        why = told(error)
    except Exception as error:  # it is somebody's own function
        raise _without_figure(metric, sums, told(error)) from error
    if not gaps:
        raise _without_figure(metric, sums, why)
    return math.nan


def _without_figure(metric: Metric, sums: Sequence[float], why: str) -> InputError:
    return InputError(
        f"the metric {metric.name} has no figure for the sums {[f'{number:g}' for number in sums]} ({why}): let its "
        "`finish` return a number that says what it is then"
    )
