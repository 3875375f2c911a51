"""How good a model is: loss, accuracy and, on training data, the objective that is minimised."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeAlias, get_args

import torch
from torch.nn.functional import cross_entropy

from feddyn.algorithms.base import Vector
from feddyn.checks import require_whole
from feddyn.data.population import Population
from feddyn.engine.rehearsal import telling_rows
from feddyn.errors import InputError, nearest
from feddyn.models.flat import FlatModel

Name: TypeAlias = Literal["server", "active", "all"]
Metric: TypeAlias = Literal["loss", "accuracy", "objective"]
Figures: TypeAlias = dict[str, float]
Part: TypeAlias = tuple[float, float]
CHUNK = 1 << 18
"""Numbers in a batch of samples: large enough to keep a core busy, small enough for its cache."""
LEAST, MOST = 250, 1000
"""Samples in a batch, whatever their size."""


@dataclass(frozen=True)
class Target:
    """A figure to reach: accuracy of at least, or loss or objective of at most `value`.

    The objective is the training loss plus weight_decay/2 ||theta||^2. As in the paper, the mean of all devices counts.
    """

    metric: Metric
    value: float
    model: Name = "all"
    stop: bool = True

    def __post_init__(self) -> None:
        if self.metric not in get_args(Metric):
            raise InputError(
                f"target: metric {self.metric!r} is not known; {nearest(str(self.metric), get_args(Metric))}"
            )
        if self.model not in get_args(Name):
            raise InputError(f"target: model {self.model!r} is not known; {nearest(str(self.model), get_args(Name))}")
        if not isinstance(self.value, Real) or isinstance(self.value, bool) or not math.isfinite(self.value):
            raise InputError(f"target: value must be a finite number, not {self.value!r}")

    def reached(self, models: dict[str, Figures]) -> bool:
        """Whether the figures of a round reach the target."""
        figure = models[self.model][self.metric]
        return figure >= self.value if self.metric == "accuracy" else figure <= self.value


@dataclass(frozen=True)
class Evaluation:
    """Which models are evaluated, and every how many rounds (the last round always is)."""

    every: int = 1
    models: Sequence[Name] = ("server", "active", "all")

    def __post_init__(self) -> None:
        require_whole("evaluation", "every", self.every, 1)
        if not self.models or isinstance(self.models, str):
            raise InputError(f"evaluation: models must be a list out of {', '.join(get_args(Name))}")
        for name in self.models:
            if name not in get_args(Name):
                raise InputError(f"evaluation: model {name!r} is not known; {nearest(str(name), get_args(Name))}")


class Evaluator:
    """Evaluates vectors on the test set, or on the training data where there is none, chunk by chunk.

    Chunks are the same whoever evaluates them, and are added up in order, so that figures do not depend on it. A loss
    that is not the plain mean over samples (one with class weights divides by their sum) gets the outputs of all
    samples at once: then there is one chunk.
    """

    def __init__(self, model: FlatModel, population: Population, weight_decay: float):
        self.model, self.transform = model, population.transform
        self.x, self.y = population.evaluated
        self._batch = min(MOST, max(LEAST, CHUNK // self.x[0].numel()))
        self.size = self._batch if self._averages() else len(self.y)
        self.chunks = -(-len(self.y) // self.size)
        self.weight_decay = weight_decay if population.test is None else None

    @torch.inference_mode()
    def chunk(self, theta: Vector, number: int) -> Part:
        """The sum of the losses over a chunk of the samples and how many were classified rightly (NaN: no classes)."""
        self.model.theta.copy_(theta)
        self.model.module.eval()
        rows = slice(number * self.size, (number + 1) * self.size)
        x, y = self.x[rows], self.y[rows]
        output = torch.cat([self._output(batch) for batch in x.split(self._batch)])
        classes = not y.is_floating_point() and y.dim() == 1 and output.dim() == 2 and output.shape[1] > 1
        hits = float((output.argmax(-1) == y).sum()) if classes else math.nan
        return float(self.model.loss(output, y)) * len(y), hits

    def _output(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x if self.transform is None else self.transform(x, self.model.theta.dtype))

    @torch.inference_mode()
    def _averages(self) -> bool:
        """Whether the loss of a few samples is the mean of their single losses. This is asked away from the initial
        model: one that starts at zero has the same loss everywhere, under which weights do not show."""
        if self.model.loss is cross_entropy:
            return True
        rows, initial = telling_rows(self.x, self.y), self.model.theta.clone()
        noise = torch.randn(initial.shape, generator=torch.Generator().manual_seed(0), dtype=initial.dtype)
        self.model.theta.add_(noise.to(initial), alpha=0.1)
        self.model.module.eval()
        output, y = self._output(self.x[rows]), self.y[rows]
        self.model.theta.copy_(initial)
        try:
            single = [float(self.model.loss(*one)) for one in zip(output.split(1), y.split(1), strict=True)]
        except (RuntimeError, ValueError, TypeError, IndexError):
            return False  # it cannot be asked about one sample
        return math.isclose(sum(single) / len(single), float(self.model.loss(output, y)), rel_tol=1e-5)

    def figures(self, theta: Vector, parts: Sequence[Part]) -> Figures:
        """The figures of a model from those of its chunks."""
        loss, hits = (sum(column) for column in zip(*parts, strict=True))
        figures = {"loss": loss / len(self.y)}
        if not math.isnan(hits):
            figures["accuracy"] = hits / len(self.y)
        if self.weight_decay is not None:
            figures["objective"] = figures["loss"] + self.weight_decay / 2 * float(theta.double().square().sum())
        return figures
