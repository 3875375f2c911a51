"""A method among the others of the leaderboard: a table and a figure for its page."""

import io
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from feddyn.reports.leaderboard import table
from feddyn.reports.standings import Standing
from feddyn.search.board import Contest
from feddyn.views.drawing import COLORS, figure, legend
from feddyn.views.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3
"""Panels beside each other."""
OWN = "#0071bc"
HUES = 48
"""Colours of a picture: enough for its few lines, and it stays a quarter of the size."""
REFERENCES = ("FedDyn", "FedAvg")


def told(contests: Sequence[tuple[Contest, Sequence[Standing]]], label: str) -> str:
    """Where a method, and what is made of it, stands in every setting that it was run in."""
    rows = []
    for contest, found in _of(contests, label):
        made = table(contest, found)
        metric, first = made.columns[2].removesuffix(" at the end"), made.rows[0]
        for place, (method, tuned, end, server, *_) in enumerate(made.rows):
            if _is(method, label):
                leader = "leads" if place == 0 else f"{first[0]}: {first[2]}"
                which = [contest.name, method, f"{place + 1} of {len(made.rows)}", tuned]
                rows.append([*which, f"{metric} {end}", server, leader])
    columns = ["setting", "method", "place", "tuned", "at the end", "of the server's model", "the leader, at the end"]
    notes = ["Means and standard deviations over seeds; places that are close are chance, as the leaderboard says."]
    return Table("where it stands", columns, rows, notes).markdown()


def draw(contests: Sequence[tuple[Contest, Sequence[Standing]]], label: str, file: Path) -> None:
    """The curves of a method, of FedDyn and FedAvg, and in grey of all others."""
    shown = _of(contests, label)
    columns = min(COLUMNS, len(shown))
    lines = -(-len(shown) // columns)
    canvas = figure(4.4 * columns if columns > 1 else 5.4, 3.1 * lines)
    for place, (contest, found) in enumerate(shown, 1):
        _panel(canvas.add_subplot(lines, columns, place), contest.name, found, label)
    drawn = io.BytesIO()
    canvas.savefig(drawn, dpi=72)
    save_small(drawn, file)


def save_small(drawn: io.BytesIO | Path, file: Path) -> None:
    """Save a picture with few colours."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(HUES).save(file, optimize=True)


def _of(contests: Sequence[tuple[Contest, Sequence[Standing]]], label: str) -> list[tuple[Contest, Sequence[Standing]]]:
    """The settings that a method was run in, each once."""
    found = {
        contest.name: (contest, standings)
        for contest, standings in reversed(contests)
        if any(_is(one.label, label) for one in standings)
    }
    return list(reversed(found.values()))


def _is(name: str, label: str) -> bool:
    """Whether a name is that of a method, or of a form of it.

    >>> _is("FedSplit All", "FedSplit"), _is("FedDyn, sharpness-aware", "FedDyn"), _is("FedAvgM", "FedAvg")
    (True, True, False)
    """
    return re.match(rf"{re.escape(label)}\b", name) is not None


def _panel(axes: "Axes", name: str, found: Sequence[Standing], label: str) -> None:
    for one in found:
        values: dict[int, list[float]] = {}
        for record in one.records.values():
            for line in record.evaluated:
                values.setdefault(line["round"], []).append(line["models"][one.model][record.headline[1]])
        means = [statistics.mean(each) for each in values.values()]
        if _is(one.label, label):
            color, style = COLORS.get(label, OWN), "-" if one.label == label else "--"
            axes.plot(list(values), means, style, color=color, linewidth=2.0, label=one.label, zorder=3)
            least, most = ([end(each) for each in values.values()] for end in (min, max))
            axes.fill_between(list(values), least, most, color=color, alpha=0.12, linewidth=0)
        elif one.label in REFERENCES:
            axes.plot(list(values), means, color=COLORS[one.label], linewidth=1.2, label=one.label, zorder=2)
        else:
            axes.plot(list(values), means, color="0.75", linewidth=0.7, zorder=1)
    metric = next(iter(found[0].records.values())).headline[1]
    if metric != "accuracy":
        axes.set_yscale("log")
    axes.set_title(name, fontsize=9)
    axes.set_xlabel("communication rounds")
    axes.set_ylabel(metric)
    axes.grid(visible=True, which="both", linewidth=0.3, alpha=0.6)
    legend(axes, fontsize=8)
