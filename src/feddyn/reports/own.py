"""Runs that are not the paper's: the comparisons that a setting asked for, and all of them together."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from feddyn.errors import InputError
from feddyn.records.comparison import read_comparison
from feddyn.records.reader import RunRecord
from feddyn.reports.records import Curve, Group
from feddyn.settings.documents import slug
from feddyn.views.comparison import compare
from feddyn.views.tables import Table, duration, transmitted

ALL = "all runs"


class Shown(NamedTuple):
    """A group of runs, the folder that it is of if it is a comparison, and its table."""

    folder: Path | None
    group: Group
    table: Table


def groups(records: Sequence[RunRecord], missing: list[str]) -> list[Shown]:
    """Each comparison, with the labels that its setting gave, and behind them all runs, which are called by what they
    differ in; one group for each figure that counts. A damaged comparison is added to `missing`."""
    folders, labels = dict[Path, list[Curve]](), dict[Path, dict[str, str]]()
    for record in records:
        parent, name = record.path.parent, record.path.resolve().name
        if parent not in labels:
            labels[parent] = _labels(parent, missing)
        if name in labels[parent]:
            curve = Curve(labels[parent][name], record.setting.get("seed", 0), record, record.status)
            folders.setdefault(parent, []).append(curve)
    found = [
        Shown(folder, Group(str(folder), curves), _table(str(folder), curves)) for folder, curves in folders.items()
    ]
    if len(found) == 1 and len(found[0].group.curves) == len(records):
        return found
    return found + _all(records)


def _all(records: Sequence[RunRecord]) -> list[Shown]:
    figures: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        figures.setdefault(record.headline, []).append(record)
    found = []
    for (model, metric), mine in figures.items():
        name = ALL if len(figures) == 1 else f"{ALL}: {metric} of the {model} model"
        together = compare(*mine)
        curves = [
            Curve(variant.label, run.setting.get("seed", 0), run, run.status)
            for variant in together.variants
            for run in variant.runs
            if isinstance(run, RunRecord)
        ]
        targets = [] if together.target is None or metric != "accuracy" else [together.target]
        table = together.table
        shown = Table(f"{name}: {table.title}", table.columns, table.rows, table.notes)
        found.append(Shown(None, Group(name, curves, targets, together.keys), shown))
    return found


def _labels(folder: Path, missing: list[str]) -> dict[str, str]:
    """What a comparison calls its runs, by directory."""
    try:
        return {slug(label): label for label, _ in read_comparison(folder)}
    except InputError as error:
        missing.append(str(error))
        return {}


def _table(title: str, curves: Sequence[Curve]) -> Table:
    rows = []
    for curve in curves:
        record, target = curve.record, curve.record.setting.get("target")
        last, (_, metric) = record.evaluated[-1], record.headline
        goal, count = "-", "-"
        if target:
            reached = record.first_at(target["value"])
            count = transmitted(reached["transmitted"] if reached else None, last["transmitted"])
            goal = f"{metric} {target['value']:.4g}"
        ran = [curve.label, str(curve.seed), record.outcome, str(len(record.history))]
        rows.append([*ran, goal, count, f"{metric} {record.figures[-1]:.4f}", duration(record.seconds)])
    columns = ["method", "seed", "status", "rounds", "target", "models transmitted until then", "at the end", "time"]
    return Table(title, columns, rows)
