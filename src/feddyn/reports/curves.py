"""Convergence curves."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddyn.metrics import Better
from feddyn.records.reader import RunRecord
from feddyn.reports.records import Group
from feddyn.views.drawing import COLORS, figure, goals, legend, scale, styles
from feddyn.views.naming import named
from feddyn.views.tables import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def convergence(
    histories: Mapping[str, Sequence[Mapping[str, Any]]],
    path: Path,
    *,
    metric: str,
    better: Better,
    model: str = "all",
    target: float | None = None,
) -> None:
    """A metric over the models transmitted, one curve a method, to a PNG or PDF file; needs the extra `report`."""
    canvas = figure(6.4, 4.2)
    axes = canvas.add_subplot()
    looks, every = styles(histories), list[float]()
    for label, history in histories.items():
        lines = [line for line in history if "models" in line]
        values = [line["models"][model][metric] for line in lines]
        axes.plot([line["transmitted"] for line in lines], values, label=label, linewidth=1.4, **looks[label])
        every += values
    goals(axes, [] if target is None else [target])
    scale(axes, better, every)
    axes.set_xlabel("models transmitted, relative to one round of FedAvg")
    axes.set_ylabel(named(metric, model))
    axes.grid(visible=True, which="both", linewidth=0.3, alpha=0.6)
    legend(axes, fontsize=10)
    canvas.savefig(path, dpi=150)


def curves_over_rounds(group: Group, directory: Path, stem: str) -> list[Path]:
    """The figure that counts over rounds, as the paper draws it: a curve a method, of several seeds the mean of those
    that got so far, and their range."""
    canvas = figure(4.6, 3.4)
    axes = canvas.add_subplot()
    methods: dict[str, list[RunRecord]] = {}
    for curve in group.curves:
        methods.setdefault(curve.label, []).append(curve.record)
    first = group.curves[0].record
    model, metric = first.headline
    looks = styles(methods)
    for label, records in methods.items():
        values: dict[int, list[float]] = {}
        for record in records:
            for line, value in zip(record.evaluated, record.figures, strict=True):
                values.setdefault(line["round"], []).append(value)
        rounds = sorted(values)
        means = [statistics.mean(values[number]) for number in rounds]
        axes.plot(rounds, means, label=label, linewidth=1.3, **looks[label])
        if len(records) > 1:
            least, most = ([end(values[number]) for number in rounds] for end in (min, max))
            axes.fill_between(rounds, least, most, color=looks[label]["color"], alpha=0.2, linewidth=0)
    goals(axes, group.targets)
    if first.better == "higher":
        top = max(*group.targets, *(curve.record.best for curve in group.curves), 0.0)
        # the steep first tenth of a curve would hide what happens near the targets
        lowest = min(curve.record.figures[len(curve.record.figures) // 10] for curve in group.curves)
        margin = 0.005 + 0.05 * (top - lowest)
        axes.set_ylim(lowest - margin, top + margin)
    scale(axes, first.better, (value for curve in group.curves for value in curve.record.figures))
    axes.set_title(visible(group.name), fontsize=9, parse_math=False)
    axes.set_xlabel("communication rounds")
    axes.locator_params(axis="x", integer=True)
    data = "training" if "objective" in next(iter(first.evaluated[-1]["models"].values())) else "test"
    axes.set_ylabel(f"{data} {named(metric, model)}")
    axes.grid(visible=True, linewidth=0.3, alpha=0.6)
    legend(axes)
    return _save(canvas, directory, stem)


def best_values(group: Group, directory: Path, stem: str) -> list[Path]:
    """The best accuracy over alpha, the second panel of the paper's sensitivity figure, in the rounds that all have."""
    canvas = figure(4.6, 3.4)
    axes = canvas.add_subplot()
    records = [curve.record for curve in group.curves]
    rounds = min(record.evaluated[-1]["round"] for record in records)
    best = []
    for record in records:
        values = zip(record.evaluated, record.figures, strict=True)
        most = max(value for line, value in values if line["round"] <= rounds)
        best.append((record.setting["algorithm"]["alpha"], most))
    axes.semilogx(*zip(*sorted(best), strict=True), "o-", color=COLORS["FedDyn"])
    axes.set_xlabel("alpha")
    axes.set_ylabel(f"best test accuracy in {rounds} {'round' if rounds == 1 else 'rounds'}")
    axes.grid(visible=True, linewidth=0.3, alpha=0.6)
    return _save(canvas, directory, stem)


def _save(canvas: "Figure", directory: Path, stem: str) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{stem}.{suffix}" for suffix in ("png", "pdf")]
    for path in paths:
        canvas.savefig(path, dpi=150)
    return paths
