"""What is measured of a model: metrics, their directions, targets, and which figure counts. Decided here and only here.

A metric is additive: of every batch it takes a few sums, which are added up over all batches, whoever evaluates them,
and from which one function makes the figure. Needs no torch to be imported, so that records can be read without it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError, nearest

if TYPE_CHECKING:
    import torch

Name: TypeAlias = Literal["server", "active", "all"]
"""The models that are reported: the server's, the mean of the active devices', the mean of all devices' latest ones."""
Kept: TypeAlias = Name | Literal["best"]
"""The models that a run keeps: those after the last round, and the one that counts after the best one."""
Better: TypeAlias = Literal["higher", "lower"]
Figures: TypeAlias = dict[str, float]
Sums: TypeAlias = Sequence[float]
BUILT_IN: Mapping[str, Better] = {"loss": "lower", "accuracy": "higher", "perplexity": "lower", "objective": "lower"}
"""The metrics that need not be asked for, where there are such. The objective, what is minimised, is the training loss
plus weight_decay/2 ||theta||^2; there is one where models are evaluated on the training data."""


def ratio(sums: Sums) -> float:
    """The first sum over the second: a mean; nothing of nothing is 0, as the precision where nobody was found ill."""
    return 0.0 if sums[0] == sums[1] == 0 else sums[0] / sums[1]


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
        found = scores(output)
        return (found.topk(min(k, found.shape[-1])).indices == y[:, None]).sum(), len(y)

    return Metric(f"top{k}", sums)


def scores(output: Any) -> Any:
    """What a model says of classes or labels: its output or, where that is a dict, the `logits` in it."""
    return output.get("logits") if isinstance(output, Mapping) else output


accuracy = Metric("accuracy", lambda output, y: ((scores(output).argmax(-1) == y).sum(), len(y)))
"""How often the class that the model finds most likely is the right one."""


def label_accuracy(threshold: float) -> Metric:
    """How many of all labels, each 0 or 1, are on the right side of a threshold."""

    def sums(output: Any, y: "torch.Tensor") -> "tuple[torch.Tensor, int]":
        return ((scores(output).reshape(y.shape) > threshold) == (y > 0.5)).sum(), y.numel()

    return Metric("accuracy", sums)


def place_accuracy(axis: int) -> Metric:
    """How many of all places of sequences or images have the right class, of those that count (a target below 0 does
    not); the classes' scores lie along an axis."""
    return Metric("accuracy", lambda output, y: ((scores(output).argmax(axis) == y).sum(), (y >= 0).sum()))


def perplexity(axis: int) -> Metric:
    """exp of the mean cross-entropy over all places of sequences that count."""

    def sums(output: Any, y: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor]":
        right = scores(output).double().log_softmax(axis).gather(axis, y.clamp(min=0).unsqueeze(axis)).squeeze(axis)
        return -right.masked_fill(y < 0, 0.0).sum(), (y >= 0).sum()

    return Metric("perplexity", sums, lambda sums: math.exp(min(ratio(sums), 700.0)), better="lower")


def natural(output: Any, y: "torch.Tensor", loss: Callable[..., Any]) -> list[Metric]:
    """The metrics that outputs and targets have besides their loss, given those of all samples' targets.

    Classes (n,) of scores (n, classes): the accuracy. Labels 0 and 1 with one output each, for two classes or several
    labels: the share of labels that are right. Sequences of classes (n, length) of scores (n, length, classes), or
    with the classes in front for PyTorch's own cross-entropy: the accuracy of places, and the perplexity.
    """
    found = scores(output)
    if not hasattr(found, "shape"):
        return []
    if y.is_floating_point() or found.shape[1:].numel() == y.shape[1:].numel():
        threshold = _threshold(found, y, loss)
        return [] if threshold is None else [label_accuracy(threshold)]
    if y.dim() == 1:
        return [accuracy] if found.dim() == 2 and found.shape[1] > 1 else []
    axis = 1 if getattr(loss, "__name__", type(loss).__name__) in ("cross_entropy", "CrossEntropyLoss") else -1
    places = found.movedim(axis, -1).shape[1:-1]
    if places != y.shape[1:]:
        return []
    return [place_accuracy(axis), *([perplexity(axis)] if y.dim() == 2 else [])]


def _threshold(found: "torch.Tensor", y: "torch.Tensor", loss: Callable[..., Any]) -> float | None:
    """Where label 1 begins, for labels 0 and 1 with one output each: at 0.5 under the loss of probabilities, at 0 under
    that of logits or any other loss that takes 0 for undecided; None: no such labels."""
    kind = getattr(loss, "__name__", type(loss).__name__)
    if found.shape[1:].numel() != y.shape[1:].numel() or not bool(((y == 0) | (y == 1)).all()):
        return None
    if kind in ("binary_cross_entropy", "BCELoss"):
        return 0.5
    if kind in ("binary_cross_entropy_with_logits", "BCEWithLogitsLoss"):
        return 0.0
    try:
        zero, one = (float(loss(found.new_zeros(found.shape), y[: len(found)] * 0 + label)) for label in (0, 1))
    except Exception:  # it is somebody's own function, and takes another output
        return None
    return 0.0 if math.isclose(zero, one, rel_tol=1e-6) and math.isfinite(zero) and zero != 0 else None


@dataclass(frozen=True)
class Evaluation:
    """Which models are evaluated, every how many rounds (the last one always is), and by which metrics in addition to
    the built-in ones; `devices`: also the server's model on every device's own samples."""

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
        if not isinstance(self.metrics, Iterable):
            raise InputError(f"evaluation: metrics must be a list, such as [{self.metrics!r}]")
        object.__setattr__(self, "metrics", tuple(self.metrics))
        for metric in self.metrics:
            if not isinstance(metric, Metric):
                raise InputError(f"evaluation: a metric must be a Metric, not {metric!r}")
        names = ["loss", "accuracy", "objective", *(metric.name for metric in self.metrics)]
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
    """A value to reach: at least `value` for metrics such as accuracy, where higher is better, otherwise at most.

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
            raise InputError(f"target: value must be from 0 to 1, as accuracies are, not {self.value:g}{hint}")

    def reached(self, models: Mapping[str, Figures], directions: Mapping[str, Better]) -> bool:
        """Whether the figures of a round reach the target."""
        return reaches(models[self.model][self.metric], self.value, directions[self.metric])


@dataclass(frozen=True)
class Patience:
    """When to stop early: after so many `rounds` in which the main metric, or another `metric` or `model`, did not
    exceed its best value by more than `gain`. It also says which round is the best one."""

    rounds: int
    gain: float = 0.0
    metric: str | None = None
    model: Name | None = None

    def __post_init__(self) -> None:
        require_whole("patience", "rounds", self.rounds, 1)
        require_number("patience", "gain", self.gain, zero=True)
        if not isinstance(self.metric, str | None):
            raise InputError(f"patience: metric must be a name, not {self.metric!r}")
        if self.model not in (None, *get_args(Name)):
            raise InputError(f"patience: model {self.model!r} is not known; {nearest(str(self.model), get_args(Name))}")


def reaches(value: float, target: float, better: Better) -> bool:
    """Whether a figure is as good as a target, or better."""
    return value >= target if better == "higher" else value <= target


def best(values: Collection[float], better: Better) -> float:
    """The best of some figures; infinitely bad where there is none."""
    return max(values, default=-math.inf) if better == "higher" else min(values, default=math.inf)


def spread(values: Sequence[float], better: Better) -> Figures:
    """How a figure is distributed over the devices that have one: worst, deciles and median, best, and standard
    deviation. A device without one has NaN; empty: there is no other.

    >>> spread([1.0, math.nan, 3.0], "higher")["worst"], spread([1.0, 2.0, 3.0], "lower")["worst"]
    (1.0, 3.0)
    """
    ordered = sorted(value for value in values if not math.isnan(value))
    count = len(ordered)
    if not count:
        return {}

    def quantile(q: float) -> float:
        at = q * (count - 1)
        low = math.floor(at)
        return ordered[low] + (at - low) * (ordered[min(low + 1, count - 1)] - ordered[low])

    least, most = ordered[0], ordered[-1]
    worst, top = (least, most) if better == "higher" else (most, least)
    mean = math.fsum(ordered) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered) / count)
    quantiles = {"q10": quantile(0.1), "median": quantile(0.5), "q90": quantile(0.9)}
    return {"worst": worst, **quantiles, "best": top, "deviation": deviation}


def worst_tenth(values: Sequence[float], better: Better) -> float:
    """The mean of a figure over the tenth of the devices where it is worst, rounded up, of those that have one.

    >>> worst_tenth([0.9, 0.2, 0.4] + 17 * [1.0], "higher")
    0.30000000000000004
    """
    ordered = sorted((value for value in values if not math.isnan(value)), reverse=better == "lower")
    count = -(-len(ordered) // 10)
    return math.fsum(ordered[:count]) / count if count else math.nan


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


def watched(setting: Mapping[str, Any], figures: Mapping[str, Collection[str]]) -> tuple[str, str]:
    """The model and the metric by which a round is the best one: those of the patience, else those that count."""
    model, metric = headline(setting, figures)
    patience = setting.get("patience", {})
    return patience.get("model", model), patience.get("metric", metric)
