"""What turns a run's vectors into outputs and figures again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from feddyn.batches import Batch, arguments, form, joined, leaves, split, taken
from feddyn.data.population import Arrays, Population
from feddyn.data.stored import as_batch, convert, require_finite
from feddyn.data.transforms import Transform, as_table
from feddyn.errors import FeddynError, InputError
from feddyn.metrics import Figures, Metric, directions, spread, worst_tenth
from feddyn.models.flat import FlatModel, Loss
from feddyn.origin import told
from feddyn.round.evaluation import Evaluator, batch_size
from feddyn.round.rehearsal import try_out


@dataclass(frozen=True)
class Parts:
    """The network, what is done to raw samples before it sees them, the loss and the metrics of a run."""

    module: nn.Module
    transform: Transform | None
    loss: Loss
    metrics: Sequence[Metric]

    @torch.no_grad()
    def outputs(self, model: nn.Module, x: Arrays) -> Batch:
        """The outputs of a model for raw samples, batch by batch as in evaluation, so that they are the same bits."""
        like = next(model.parameters())
        samples = convert(as_batch(x, "what is to be predicted"), like.dtype, like.device)
        parts = leaves(samples)
        if not parts or any(part.dim() == 0 or len(part) == 0 for part in parts):
            raise InputError("what is to be predicted holds no samples: give an array with one sample a row")
        for part in parts:
            require_finite(part, "what is to be predicted")
        transform = self.transform or (lambda batch, dtype: batch)
        try:
            batches = split(samples, batch_size(transform(taken(samples, slice(1)), like.dtype)))
            inputs = (arguments(transform(batch, like.dtype)) for batch in batches)
            return joined([model(*args, **kwargs) for args, kwargs in inputs])
        except FeddynError:
            raise
        except Exception as error:  # whatever somebody's own code raises
            raise InputError(
                f"the model does not take samples of shape {form(samples)}: "
                f"{told(error)}; give raw samples as the run's data has them, one a row"
            ) from error


@dataclass(frozen=True)
class Evaluated:
    """The figures of a model on new data: of all samples, and of each device's own as columns, with the devices' names
    and numbers of samples."""

    figures: Figures
    devices: dict[str, list[Any]]
    directions: dict[str, Any]

    @property
    def spread(self) -> dict[str, Figures]:
        """How each figure is distributed over the devices: worst, the mean of the worst 10%, deciles, median, best and
        standard deviation."""
        found = {}
        for name in self.figures:
            values, better = self.devices[name], self.directions[name]
            if spreading := spread(values, better):
                found[name] = {"worst 10%": worst_tenth(values, better), **spreading}
        return found


def evaluate(parts: Parts, model: nn.Module, population: Population) -> Evaluated:
    """The figures of a model on the samples of a population: its test set, if it has one, or all, and each device's."""
    flat = FlatModel(model, parts.loss)
    there = population.to(flat.theta.dtype, flat.theta.device)
    try_out(flat, there, parts.transform)
    evaluator = Evaluator(flat, there, 0.0, parts.metrics, parts.transform)
    theta = flat.theta.clone()

    def figures(first: int, count: int) -> Figures:
        sums = [evaluator.chunk(theta, first + number) for number in range(count)]
        found = evaluator.figures(theta, sums, gaps=first > 0)
        return {name: value for name, value in found.items() if name != "objective"}  # it is of training

    whole, devices = figures(0, evaluator.chunks), range(there.devices)
    rows = [figures(evaluator.chunks + k, 1) for k in devices]
    columns: dict[str, list[Any]] = {"device": [there.name(k) for k in devices]}
    columns |= {"samples": there.sizes_of(devices).tolist(), **{name: [row[name] for row in rows] for name in whole}}
    own = {"evaluation": {"metrics": [{"name": metric.name, "better": metric.better} for metric in parts.metrics]}}
    return Evaluated(whole, columns, dict(directions(own)))


def describe_inputs(population: Population, dtype: torch.dtype) -> dict[str, Any]:
    """What a record says about a model's inputs: the raw samples' shape and type, the transform, the type that the
    model computes in and, of a table, how its columns became samples."""
    x, _ = population.evaluated
    table: dict[str, Any] = {"dtype": str(dtype).removeprefix("torch.")}
    if isinstance(x, torch.Tensor):
        table["sample"] = {"shape": list(x.shape[1:]), "dtype": str(x.dtype).removeprefix("torch.")}
    else:
        table["sample"] = {"form": form(x)}
    if encoding := population.origin.get("encoding"):
        table["columns"] = {"features": population.origin["features"], "encoding": encoding}
    return table if population.transform is None else {**table, "transform": as_table(population.transform)}
