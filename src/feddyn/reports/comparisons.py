"""Runs that are not the paper's: the comparisons that a setting asked for, the settings of leaderboards, and all others
together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from feddyn.errors import InputError
from feddyn.records.comparison import read_comparison
from feddyn.records.reader import RunRecord
from feddyn.reports.records import Curve, Group
from feddyn.search.tuned import FILE as TUNED
from feddyn.settings.documents import slug
from feddyn.views.comparison import compare
from feddyn.views.naming import named
from feddyn.views.tables import Table, duration, transmitted

ALL = "all runs"


class Shown(NamedTuple):
    """A group of runs, the folder that it is of if it is of one, its table, and the table for a terminal."""

    folder: Path | None
    group: Group
    table: Table
    brief: Table


def groups(records: Sequence[RunRecord], missing: list[str]) -> list[Shown]:
    """Each comparison, with the labels that its setting gave, each setting of a leaderboard, and behind them all other
    runs; these are called by what they differ in, one group for each figure that counts. A damaged comparison is added
    to `missing`."""
    folders, labels = dict[Path, list[Curve]](), dict[Path, dict[str, str]]()
    contests, rest = dict[Path, list[RunRecord]](), list[RunRecord]()
    for record in records:
        parent, name = record.path.parent, record.path.resolve().name
        if (parent / TUNED).exists():
            contests.setdefault(parent, []).append(record)
            continue
        rest.append(record)
        if parent not in labels:
            labels[parent] = _labels(parent, missing)
        if name in labels[parent]:
            curve = Curve(labels[parent][name], record.setting.get("seed", 0), record, record.status)
            folders.setdefault(parent, []).append(curve)
    found = []
    for folder, curves in folders.items():
        table = _table(str(folder), curves)
        found.append(Shown(folder, Group(str(folder), curves, _targets(curves)), table, table))
    for folder, mine in contests.items():
        found += _together(mine, str(folder), folder)
    whole = len(folders) == 1 and len(found[0].group.curves) == len(rest)
    return found if whole else found + _together(rest, ALL)


def _targets(curves: Sequence[Curve]) -> list[float]:
    """What the runs of a comparison should reach."""
    goals = (curve.record.setting.get("target", {}) for curve in curves)
    return sorted({goal["value"] for goal in goals if goal})


def _together(records: Sequence[RunRecord], whose: str, folder: Path | None = None) -> list[Shown]:
    figures: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        figures.setdefault(record.headline, []).append(record)
    found = []
    for (model, metric), mine in figures.items():
        name = whose if len(figures) == 1 else f"{whose}: {named(metric, model)}"
        together = compare(*mine)
        curves = [
            Curve(variant.label, run.setting.get("seed", 0), run, run.status)
            for variant in together.variants
            for run in variant.runs
            if isinstance(run, RunRecord)
        ]
        targets = [] if together.target is None else [together.target]
        tables = [replace(made, title=f"{whose}: {made.title}") for made in (together.table, together.brief)]
        found.append(Shown(folder, Group(name, curves, targets, together.keys), *tables))
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
