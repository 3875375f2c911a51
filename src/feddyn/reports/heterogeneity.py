"""How different devices are: the classes that hold most of a device's data, as in the paper's Figure 'het'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from feddyn.data.datasets.federations import split_labels
from feddyn.paper.trials import Choice
from feddyn.records.files import refuse_links
from feddyn.views.drawing import figure
from feddyn.views.tables import Table

Counts = npt.NDArray[np.int64]
"""Devices x classes: how many samples of each class a device has."""
FRACTIONS = (0.4, 0.6, 0.8)
TITLE = "the classes that hold 40%, 60% and 80% of a device's data, MNIST, 100 devices"
SPLITS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "iid": ("IID", {"split": "iid"}),
    "dirichlet0.6": ("Dirichlet (.6)", {"split": "dirichlet", "concentration": 0.6}),
    "dirichlet0.3": ("Dirichlet (.3)", {"split": "dirichlet", "concentration": 0.3}),
}
"""The splits of the paper's figure, by row."""


def class_counts(labels: npt.NDArray[np.integer], parts: Sequence[npt.NDArray[np.int64]]) -> Counts:
    """How many samples of each class each device has."""
    classes = int(labels.max()) + 1
    return np.stack([np.bincount(labels[part], minlength=classes) for part in parts])


def classes_holding(counts: Counts, fraction: float) -> npt.NDArray[np.int64]:
    """How many of a device's most frequent classes hold at least this fraction of its data, for each device."""
    frequent_first = -np.sort(-counts, axis=1)
    held = np.cumsum(frequent_first, axis=1) / counts.sum(1, keepdims=True)
    return np.asarray((held < fraction - 1e-9).sum(1) + 1)


def table(splits: Mapping[str, Counts]) -> Table:
    """A row a split: for each fraction the mean number of classes, and how many devices have how many."""
    rows = []
    for name, counts in splits.items():
        row = [name]
        for fraction in FRACTIONS:
            held = classes_holding(counts, fraction)
            found = ", ".join(f"{k}: {n}" for k, n in zip(*np.unique(held, return_counts=True), strict=True))
            row.append(f"{held.mean():.1f} ({found})")
        sizes = counts.sum(1)
        rows.append([*row, f"{sizes.min()} - {sizes.max()}"])
    columns = ["split", *(f"classes that hold {fraction:.0%}" for fraction in FRACTIONS), "samples a device"]
    note = "The mean over devices, and in parentheses number of classes: number of devices."
    return Table("heterogeneity", columns, rows, [note])


def histograms(splits: Mapping[str, Counts], path: Path) -> None:
    """The paper's three histograms: over devices, the number of classes that hold 40%, 60% and 80% of the data."""
    canvas = figure(10.5, 3.2)
    for axes, fraction in zip(canvas.subplots(1, len(FRACTIONS)), FRACTIONS, strict=True):
        classes = max(counts.shape[1] for counts in splits.values())
        width = 0.8 / len(splits)
        for i, (name, counts) in enumerate(splits.items()):
            devices = np.bincount(classes_holding(counts, fraction), minlength=classes + 1)[1:]
            axes.bar(np.arange(1, classes + 1) + (i - (len(splits) - 1) / 2) * width, devices, width, label=name)
        axes.set_xlabel(f"classes that hold {fraction:.0%} of the data")
        axes.set_ylabel("devices")
    canvas.axes[0].legend(frameon=False)
    canvas.savefig(path, dpi=150)


def save_paper(labels: npt.NDArray[np.integer], choice: Choice, directory: Path) -> Table:
    """The paper's figure, or some rows of it, and its table, written into a directory."""
    choice.check("heterogeneity", list(SPLITS))
    refuse_links(directory, itself=True)
    chosen = [made for row, made in SPLITS.items() if choice.row(row)]
    counts = {name: class_counts(labels, split_labels(labels, 100, **how)) for name, how in chosen}
    made = table(counts)
    made.save(directory, "table")
    for suffix in ("png", "pdf"):
        histograms(counts, directory / f"histograms.{suffix}")
    return made


def picture(name: str, counts: Counts, path: Path) -> None:
    """Devices x classes, the darker the more samples."""
    canvas = figure(4 + counts.shape[1] / 10, 2 + len(counts) / 20)
    axes = canvas.add_subplot()
    image = axes.imshow(counts, aspect="auto", cmap="Greys", interpolation="nearest")
    canvas.colorbar(image, label="samples")
    axes.set_xlabel("class")
    axes.set_ylabel("device")
    axes.set_title(name)
    canvas.savefig(path, dpi=150)
