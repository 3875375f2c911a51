"""A method among the others of the leaderboard: a table and a figure for its page."""

import io
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from feddyn.reports.leaderboard import Standing, table
from feddyn.search.board import Board
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


def told(board: Board, results: Sequence[Sequence[Standing]], label: str) -> str:
    """Where a method stands in every setting that it was run in."""
    rows, heads = [], list[str]()
    for contest, found in zip(board.contests, results, strict=True):
        made = table(contest, found)
        labels = [row[0] for row in made.rows]
        if label in labels:
            place = labels.index(label)
            own, first = made.rows[place], made.rows[0]
            heads = ["setting", "place", "tuned", "model", "at the end", "the leader, at the end"]
            leads = "leads" if place == 0 else f"{first[0]}: {first[3]}"
            figure = f"{made.columns[3].partition(' at ')[0]} {own[3]}"
            rows.append([contest.name, f"{place + 1} of {len(labels)}", own[1], own[2], figure, leads])
    if not rows:
        return "It is not in the leaderboard, and no record of it is kept here.\n"
    notes = ["Means and standard deviations over seeds; places that are close are chance, as the leaderboard says."]
    return Table("where it stands in the leaderboard", heads, rows, notes).markdown()


def draw(board: Board, results: Sequence[Sequence[Standing]], label: str, file: Path) -> bool:
    """The curves of a method, of FedDyn and FedAvg, and in grey of all others; whether there are any."""
    shown = [
        (contest.name, found)
        for contest, found in zip(board.contests, results, strict=True)
        if any(one.label == label for one in found)
    ]
    if not shown:
        return False
    columns = min(COLUMNS, len(shown))
    lines = -(-len(shown) // columns)
    canvas = figure(4.4 * columns if columns > 1 else 5.4, 3.1 * lines)
    for place, (name, found) in enumerate(shown, 1):
        _panel(canvas.add_subplot(lines, columns, place), name, found, label)
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    canvas.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(HUES).save(file, optimize=True)
    return True


def _panel(axes: "Axes", name: str, found: Sequence[Standing], label: str) -> None:
    for one in found:
        values: dict[int, list[float]] = {}
        for record in one.records.values():
            for line in record.evaluated:
                values.setdefault(line["round"], []).append(line["models"][one.model][record.headline[1]])
        means = [statistics.mean(each) for each in values.values()]
        if one.label == label:
            axes.plot(list(values), means, color=COLORS.get(label, OWN), linewidth=2.2, label=label, zorder=3)
            least, most = ([end(each) for each in values.values()] for end in (min, max))
            axes.fill_between(list(values), least, most, color=COLORS.get(label, OWN), alpha=0.15, linewidth=0)
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
