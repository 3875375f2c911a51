"""Curves of a run, and of runs beside each other."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from feddyn.errors import InputError, nearest
from feddyn.metrics import directions
from feddyn.records.recorded import Recorded
from feddyn.views.differences import method
from feddyn.views.drawing import figure, goals, legend, scale, styles
from feddyn.views.naming import MODELS, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from feddyn.views.comparison import Comparison

AXES: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], int]]] = {
    "round": ("communication rounds", lambda line: line["round"]),
    "transmitted": ("models transmitted, relative to one round of FedAvg", lambda line: line["transmitted"]),
    "bytes": ("bytes sent up and down", lambda line: line["bytes_up"] + line["bytes_down"]),
    "gradients": ("gradients of samples", lambda line: line["gradients"]),
}


def overlay(comparison: "Comparison", over: str) -> "Figure":
    """The curves of a comparison: a variant's mean over its seeds, in the range of them."""
    bands = [(variant, comparison.band(variant, over)) for variant in comparison.variants]
    canvas = figure(6.4, 4.2)
    axes = canvas.add_subplot()
    looks = styles(variant.label for variant, _ in bands)
    for variant, band in bands:
        look = looks[variant.label]
        axes.plot(band.x, band.mean, label=variant.label, linewidth=1.4, **look)
        if len(variant.runs) > 1:
            axes.fill_between(band.x, band.least, band.most, color=look["color"], alpha=0.2, linewidth=0)
    scale(axes, comparison.better, (value for _, band in bands for value in band.least))
    _finish(axes, comparison.target)
    axes.set_xlabel(AXES[over][0])
    axes.set_ylabel(named(comparison.metric, comparison.model))
    return canvas


def of_run(run: Recorded, metric: str | None = None) -> "Figure":
    """A metric of every evaluated model of a run over rounds."""
    lines, name = run.evaluated, metric or run.headline[1]
    if not lines:
        raise InputError("no round of the run has been evaluated yet: there is nothing to draw")
    models = [model for model, figures in lines[-1]["models"].items() if name in figures]
    if not models:
        known = sorted({known for figures in lines[-1]["models"].values() for known in figures})
        raise InputError(f"the run has no {name!r}; {nearest(name, known)}")
    canvas = figure(6.4, 4.2)
    axes = canvas.add_subplot()
    for model in models:
        values = [line["models"][model][name] for line in lines]
        axes.plot([line["round"] for line in lines], values, label=MODELS.get(model, model), linewidth=1.4)
    scale(axes, directions(run.setting)[name], (line["models"][model][name] for line in lines for model in models))
    target = run.setting.get("target", {})
    _finish(axes, target.get("value") if target.get("metric") == name else None)
    axes.set_xlabel("communication rounds")
    axes.set_ylabel(name)
    axes.set_title(method(run.setting), fontsize=10, parse_math=False)
    return canvas


def _finish(axes: "Axes", target: float | None) -> None:
    goals(axes, [] if target is None else [target])
    axes.grid(visible=True, which="both", linewidth=0.3, alpha=0.6)
    legend(axes)
