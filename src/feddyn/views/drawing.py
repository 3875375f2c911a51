"""What all figures share: an empty one, the methods' colours, labelled targets, and labels in which nothing is a
formula."""

from collections.abc import Iterable, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from feddyn.errors import FeddynError
from feddyn.metrics import Better
from feddyn.views.tables import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {
    "FedDyn": "#c1272d",
    "FedDynM": "#f08a8f",
    "SCAFFOLD": "#0071bc",
    "FedAvg": "#2e8b57",
    "FedProx": "#b8860b",
    "FedSplit": "#7b3fa0",
    "FedDR": "#e0762c",
    "FedDC": "#17a2a2",
    "AdaBest": "#c2479b",
    "FedACG": "#8a5a3b",
    "FedAvgM": "#86b84a",
    "FedAdam": "#6672e0",
    "FedYogi": "#5f7a86",
}
PALETTE = (
    *("#4e79c4", "#e07b39", "#17a2a2", "#c2479b", "#7b6fd0", "#6a994e"),
    *("#d1495b", "#8a6d3b", "#3d8bfd", "#b5892c", "#5f7a86", "#a05195"),
)
"""Colours of whatever is no method."""
DASHES = ("-", ":", "--", "-.", (0, (8, 2)), (0, (5, 1, 1, 1, 1, 1)))
LONGEST = 70
"""Characters of a label."""
NAMED, INSIDE, SHORT = 12, 6, 24
"""Curves that a legend names, how many of them stand inside the axes, and how long their names may be there."""


def figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FeddynError("plots need matplotlib: pip install 'feddyn[report]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def styles(labels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and a dash pattern for every curve: a method has its own colour; where there are several methods, all
    curves of one have it. A colour that occurs again comes with another dash pattern."""
    found: dict[str, dict[str, Any]] = {}
    own, times = dict[str, str](), dict[str, int]()
    names = list(dict.fromkeys(labels))
    several = len({_method(name) for name in names}) > 1
    for name in names:
        key = _method(name) if several else name
        color = COLORS.get(key) or own.setdefault(key, PALETTE[len(own) % len(PALETTE)])
        first = 2 if name == "FedProx" else 0  # it often lies on FedAvg's curve
        dash = DASHES[(first + times.get(color, 0)) % len(DASHES)]
        times[color] = times.get(color, 0) + 1
        found[name] = {"color": color, "linestyle": dash}
    return found


def _method(label: str) -> str:
    """The method at the head of a label, if there is one, else the label."""
    head = label.partition(",")[0]
    return head if head in COLORS else label


def scale(axes: "Axes", better: Better, values: Iterable[float]) -> None:
    """By magnitude where less is better and all is positive, as losses are."""
    if better == "lower" and all(value > 0 for value in values):
        axes.set_yscale("log")


def goals(axes: "Axes", targets: Sequence[float]) -> None:
    """Lines at targets, with their values; of two neighbours, one is named below its line."""
    for place, target in enumerate(sorted(targets, reverse=True)):
        axes.axhline(target, color="0.4", linewidth=0.8, linestyle="--")
        how = {"fontsize": 7, "color": "0.3", "ha": "right", "va": "top" if place % 2 else "bottom"}
        words, across = f"target {target:.4g}", axes.get_yaxis_transform()
        axes.text(0.99, target, words, how, transform=across, clip_on=True)  # one out of sight needs no room


def legend(axes: "Axes", fontsize: float = 8) -> None:
    """The first curves by name: a few short names inside the axes, others beside them, for which the figure becomes
    wider. Labels are anybody's: nothing in them is a formula."""
    handles, labels = axes.get_legend_handles_labels()
    texts = [shorten(visible(label), LONGEST, placeholder=" ...") for label in labels[:NAMED]]
    handles = handles[:NAMED]
    if left := len(labels) - len(handles):
        from matplotlib.lines import Line2D

        handles, texts = [*handles, Line2D([], [], linestyle="none")], [*texts, f"and {left} more"]
    longest = max(map(len, texts), default=0)
    beside = len(texts) > INSIDE or longest > SHORT
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0} if beside else {}
    if beside:
        canvas = axes.figure
        width, height = canvas.get_size_inches()  # type: ignore[union-attr]
        canvas.set_size_inches(width + 0.7 + longest * fontsize * 0.6 / 72, height)  # type: ignore[union-attr]
    for text in axes.legend(handles, texts, frameon=False, fontsize=fontsize, **where).get_texts():
        text.set_parse_math(False)
