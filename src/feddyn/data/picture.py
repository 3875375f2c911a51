"""A population in words, and as a picture in a notebook: how many samples of which class each device has."""

from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from feddyn.batches import form
from feddyn.data.population import Population

SHOWN, CLASSES = 40, 100
"""Devices in the picture, and the most classes that are counted."""
CELL = 12
"""Pixels."""


def words(population: Population) -> str:
    """Sizes, classes and the test set in a line."""
    sizes = population.sizes_of(range(population.devices))
    least, most = int(sizes.min()), int(sizes.max())
    each = f"{least}" if least == most else f"{least} to {most}"
    x, y = population.evaluated
    found = f"{population.devices:,} devices, {population.total:,} samples ({each} a device) of {form(x)}"
    found += f", {_classes(y)} classes" if _classes(y) else f", targets {form(y)}"
    test = population.test
    return f"Population({found}, {f'{len(test[1]):,} test samples' if test else 'no test set'})"


def html(population: Population) -> str:
    """The line, and below it a row for each of the first devices: a field for each class, the darker the more of the
    device's samples are of it, and a bar for its size."""
    shown = range(min(SHOWN, population.devices))
    sizes = population.sizes_of(shown)
    counts = class_counts(population, len(shown))
    left, width = 150, 0 if counts is None else CELL * counts.shape[1]
    parts: list[str] = []
    for k in shown:
        top = CELL * k
        name = escape(population.name(k)[:20])
        parts.append(f'<text x="{left - 6}" y="{top + CELL - 3}" text-anchor="end">{name}</text>')
        for label, count in enumerate(() if counts is None else counts[k]):
            title = f"<title>{name}: {count} of class {label}</title>"
            shade = f'fill="currentColor" fill-opacity="{0.04 + 0.96 * count / sizes[k]:.2f}"'
            place = f'x="{left + CELL * label}" y="{top}" width="{CELL - 1}" height="{CELL - 1}"'
            parts.append(f"<rect {place} {shade}>{title}</rect>")
        bar = f'x="{left + width + 8}" y="{top + 2}" width="{150 * sizes[k] / sizes.max():.1f}" height="{CELL - 4}"'
        parts.append(f'<rect {bar} fill="currentColor" fill-opacity="0.4"/>')
        parts.append(f'<text x="{left + width + 166}" y="{top + CELL - 3}">{sizes[k]}</text>')
    size = f'width="{left + width + 230}" height="{CELL * len(shown) + 4}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="9">{"".join(parts)}</svg>'
    more = f"<div>and {population.devices - len(shown):,} more devices</div>" if population.devices > SHOWN else ""
    return f"<div><code>{escape(words(population))}</code></div>{svg}{more}"


def _classes(y: torch.Tensor) -> int:
    """How many classes targets have; 0 where they are none."""
    return 0 if y.is_floating_point() or y.dim() != 1 else int(y.max()) + 1


def class_counts(population: Population, devices: int) -> npt.NDArray[np.int64] | None:
    """Samples of the first devices, by class, where they are in memory and have classes."""
    y: Any = getattr(population, "y", None)
    if y is None or not 0 < _classes(y) <= CLASSES or int(y.min()) < 0:
        return None
    found = [population.samples(k)[1].cpu().numpy().astype(np.int64) for k in range(devices)]
    return np.stack([np.bincount(labels, minlength=_classes(y)) for labels in found])
