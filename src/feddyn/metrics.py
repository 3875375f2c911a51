"""What is measured of a model: metrics, their directions, targets, and which figure counts. Decided here and only here.

A metric is additive: of every batch it takes a few sums, which are added up over all batches, whoever evaluates them,
and from which one function makes the figure. Needs no torch to be imported, so that records can be read without it.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from feddyn.checks import require_whole
from feddyn.errors import InputError, nearest

if TYPE_CHECKING:
    import torch

Name: TypeAlias = Literal["server", "active", "all"]
"""The models that are reported: the server's, the mean of the active devices', the mean of all devices' latest ones."""
Better: TypeAlias = Literal["higher", "lower"]
Figures: TypeAlias = dict[str, float]
Sums: TypeAlias = Sequence[float]
BUILT_IN: Mapping[str, Better] = {"loss": "lower", "accuracy": "higher", "objective": "lower"}
"""The metrics that need not be asked for. The objective, what is minimised, is the training loss plus
weight_decay/2 ||theta||^2; there is one where models are evaluated on the training data."""


def ratio(sums: Sums) -> float:
    """The first sum over the second: a mean."""
    return sums[0] / sums[1]


@dataclass(frozen=True)
class Metric:
    """A metric of one's own: `sums(output, targets)` of a batch gives numbers that add up over batches, `finish` makes
    the figure of their totals (default: the first over the second), and `better` says which way is up.

    >>> mae = Metric("mae", lambda output, y: ((output - y).abs().sum(), y.numel()), better="lower")
    """

    name: str
    sums: "Callable[[torch.Tensor, torch.Tensor], Sequence[float | torch.Tensor] | torch.Tensor]"
    finish: Callable[[Sums], float] = ratio
    better: Better = "higher"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise InputError(f"a metric's name is a word of letters, digits and _, not {self.name!r}")
        if self.better not in get_args(Better):
            raise InputError(f"metric {self.name}: better must be 'higher' or 'lower', not {self.better!r}")

    def batch(self, output: "torch.Tensor", y: "torch.Tensor") -> list[float]:
        """The sums of a batch, as plain numbers."""
        return [float(number) for number in self.sums(output, y)]


def top(k: int) -> Metric:
    """Top-k accuracy: how often the right class is among the k that the model finds most likely."""
    require_whole("metric top", "k", k, 1)

    def sums(output: "torch.Tensor", y: "torch.Tensor") -> "tuple[torch.Tensor, int]":
        return (output.topk(min(k, output.shape[-1])).indices == y[:, None]).sum(), len(y)

    return Metric(f"top{k}", sums)


accuracy = Metric("accuracy", lambda output, y: ((output.argmax(-1) == y).sum(), len(y)))
"""How often the class that the model finds most likely is the right one."""


def classifies(output: "torch.Tensor", y: "torch.Tensor") -> bool:
    """Whether outputs are scores of classes and targets the numbers of classes, so that there is an accuracy."""
    return not y.is_floating_point() and y.dim() == 1 and output.dim() == 2 and output.shape[1] > 1


@dataclass(frozen=True)
class Evaluation:
    """Which models are evaluated, every how many rounds (the last round always is), and by which metrics beside the
    built-in ones; `devices`: also the server's model on every device's own samples."""

    every: int = 1
    models: Sequence[Name] = get_args(Name)
    metrics: Sequence[Metric] = ()
    devices: bool = False

    def __post_init__(self) -> None:
        require_whole("evaluation", "every", self.every, 1)
        if not self.models or isinstance(self.models, str):
            raise InputError(f"evaluation: models must be a list out of {', '.join(get_args(Name))}")
        for name in self.models:
            if name not in get_args(Name):
                raise InputError(f"evaluation: model {name!r} is not known; {nearest(str(name), get_args(Name))}")
        for metric in self.metrics:
            if not isinstance(metric, Metric):
                raise InputError(f"evaluation: a metric must be a Metric, not {metric!r}")
        names = [*BUILT_IN, *(metric.name for metric in self.metrics)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise InputError(f"evaluation: there are two metrics {min(twice)!r}: give yours another name")
        if not isinstance(self.devices, bool):
            raise InputError(f"evaluation: devices must be true or false, not {self.devices!r}")

    @property
    def directions(self) -> dict[str, Better]:
        """Which way is better, of every metric there may be."""
        return {**BUILT_IN, **{metric.name: metric.better for metric in self.metrics}}


@dataclass(frozen=True)
class Target:
    """A figure to reach: at least `value` of a metric of which more is better, such as accuracy, else at most.

    As in the paper, the mean of all devices counts.
    """

    metric: str
    value: float
    model: Name = "all"
    stop: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str):
            raise InputError(f"target: metric must be a name, not {self.metric!r}")
        if self.model not in get_args(Name):
            raise InputError(f"target: model {self.model!r} is not known; {nearest(str(self.model), get_args(Name))}")
        if not isinstance(self.value, Real) or isinstance(self.value, bool) or not math.isfinite(self.value):
            raise InputError(f"target: value must be a finite number, not {self.value!r}")
        if self.metric == "accuracy" and not 0 <= self.value <= 1:
            hint = f": write {self.value / 100:g} for {self.value:g}%" if 1 < self.value <= 100 else ""
            raise InputError(f"target: an accuracy is a fraction, from 0 to 1, not {self.value:g}{hint}")

    def reached(self, models: Mapping[str, Figures], directions: Mapping[str, Better]) -> bool:
        """Whether the figures of a round reach the target."""
        return reaches(models[self.model][self.metric], self.value, directions[self.metric])


def reaches(value: float, target: float, better: Better) -> bool:
    """Whether a figure is as good as a target, or better."""
    return value >= target if better == "higher" else value <= target


def best(values: Collection[float], better: Better) -> float:
    """The best of some figures; infinitely bad where there is none."""
    return max(values, default=-math.inf) if better == "higher" else min(values, default=math.inf)


def spread(values: Sequence[float], better: Better) -> Figures:
    """How a figure is distributed over devices: worst, deciles and median, best, and standard deviation.

    >>> spread([1.0, 2.0, 3.0], "higher")["worst"], spread([1.0, 2.0, 3.0], "lower")["worst"]
    (1.0, 3.0)
    """
    ordered, count = sorted(values), len(values)

    def quantile(q: float) -> float:
        at = q * (count - 1)
        low = math.floor(at)
        return ordered[low] + (at - low) * (ordered[min(low + 1, count - 1)] - ordered[low])

    least, most = ordered[0], ordered[-1]
    worst, top = (least, most) if better == "higher" else (most, least)
    mean = math.fsum(values) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / count)
    quantiles = {"q10": quantile(0.1), "median": quantile(0.5), "q90": quantile(0.9)}
    return {"worst": worst, **quantiles, "best": top, "deviation": deviation}


def directions(setting: Mapping[str, Any]) -> dict[str, Better]:
    """Which way is better, of every metric that a run with this setting has."""
    own = setting.get("evaluation", {}).get("metrics", ())
    return {**BUILT_IN, **{metric["name"]: metric["better"] for metric in own}}


def headline(setting: Mapping[str, Any], figures: Mapping[str, Collection[str]]) -> tuple[str, str]:
    """The model and the metric that count, given the names of the figures of each model: the target's; else the mean of
    all devices (or the last model there is) by the first metric of one's own, the objective on training data, the
    accuracy, or the loss."""
    if target := setting.get("target"):
        return target["model"], target["metric"]
    model = "all" if "all" in figures else list(figures)[-1]
    own = [metric["name"] for metric in setting.get("evaluation", {}).get("metrics", ())]
    return model, next(name for name in (*own, "objective", "accuracy", "loss") if name in figures[model])
