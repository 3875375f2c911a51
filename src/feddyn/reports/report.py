"""A whole report from the records below some directories: tables, figures and the page."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from feddyn.errors import FeddynError
from feddyn.experiments.catalogue import experiments
from feddyn.reports.curves import best_values, curves_over_rounds
from feddyn.reports.page import write
from feddyn.reports.paper import table
from feddyn.reports.records import Curve, Entry, Group, Recorded, entries, find
from feddyn.reports.tables import Table, duration, transmitted


class Report(NamedTuple):
    """What was written, and what could not be and why."""

    tables: list[Table]
    files: list[Path]
    missing: list[str]


def make(directories: Sequence[Path], out: Path) -> Report:
    """Write tables (Markdown, LaTeX, CSV), figures (PDF, PNG) and index.html over those of an earlier report."""
    records = find(directories)
    out.mkdir(parents=True, exist_ok=True)
    tables, groups, taken = dict[str, Table](), list[Group](), set[Path]()
    figures: list[tuple[str, Group]] = []
    for name, experiment in experiments().items():
        found = entries(experiment, records)
        if not found:
            continue
        tables[name] = table(experiment, found)
        taken |= {entry.record.path for entry in found}
        for row in experiment.rows:
            if mine := [entry for entry in found if entry.job.row == row]:
                groups.append(Group(f"{name}: {row}", _curves(mine), mine[0].job.targets))
                figures.append((f"{name}-{row}", groups[-1]))
    for folder, others in _comparisons([record for record in records if record.path not in taken]):
        groups.append(Group(folder, others))
        tables[_file_name(folder)] = _own(folder, others)
        figures.append((_file_name(folder), groups[-1]))
    tables |= {name: made for directory in directories for name, made in _special(directory)}
    files, missing = [], []
    for name, made in tables.items():
        files += made.save(out / "tables", name)
    try:
        for name, group in figures:
            files += curves_over_rounds(group, out / "figures", name)
        if alphas := [group for name, group in figures if name.startswith("alpha-")]:
            files += best_values(alphas[0], out / "figures", "alpha-best")
        write(out / "index.html", groups, list(tables.values()), _about(records))
        files.append(out / "index.html")
    except FeddynError as error:
        missing.append(str(error))
    return Report(list(tables.values()), files, missing)


def _curves(found: Sequence[Entry]) -> list[Curve]:
    return [Curve(entry.job.label, entry.seed, entry.record, entry.status) for entry in found]


def _comparisons(records: Sequence[Recorded]) -> Iterator[tuple[str, list[Curve]]]:
    """Runs that are not the paper's: those of a comparison together, others each for themselves."""
    folders: dict[Path, list[Curve]] = {}
    for record in records:
        names = _labels(record.path.parent)
        label = names.get(record.path.name, record.path.name)
        folder = record.path.parent if names else record.path
        folders.setdefault(folder, []).append(Curve(label, int(record.setting.get("seed", 0)), record, record.status))
    for folder, curves in folders.items():
        yield str(folder), curves


def _labels(folder: Path) -> dict[str, str]:
    """What a comparison calls its runs, by directory."""
    from feddyn.experiments.documents import slug

    try:
        runs = json.loads((folder / "comparison.json").read_bytes())["runs"]
        return {slug(run["label"]): run["label"] for run in runs}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _own(title: str, curves: Sequence[Curve]) -> Table:
    rows = []
    for curve in curves:
        record, target = curve.record, curve.record.setting.get("target")
        last, line = record.evaluated[-1], None
        model, figures = list(last["models"].items())[-1]
        metric = "accuracy" if "accuracy" in figures else "loss"
        if target:
            model, metric, sign = target["model"], target["metric"], 1 if target["metric"] == "accuracy" else -1
            hits = (r for r in record.evaluated if sign * r["models"][model][metric] >= sign * target["value"])
            line = next(hits, None)
        count = transmitted(line["transmitted"] if line else None, last["transmitted"]) if target else "-"
        goal = f"{metric} {target['value']:.4g}" if target else "-"
        ran = [curve.label, str(curve.seed), record.status, str(len(record.history))]
        figure = f"{metric} {last['models'][model][metric]:.4f}"
        rows.append([*ran, goal, count, figure, duration(record.seconds)])
    columns = ["method", "seed", "status", "rounds", "target", "models transmitted until then", "at the end", "time"]
    return Table(title, columns, rows)


def _special(directory: Path) -> Iterator[tuple[str, Table]]:
    """The tables that `feddyn reproduce` made besides runs."""
    for name in ("synthetic", "heterogeneity"):
        file = directory / name / "table.csv"
        if file.exists():
            with file.open(newline="", encoding="utf-8") as stream:
                columns, *rows = list(csv.reader(stream))
            yield name, Table(name, columns, rows)


def _about(records: Sequence[Recorded]) -> str:
    spent = duration(sum(record.seconds for record in records))
    return f"{len(records)} runs, {sum(len(record.history) for record in records):,} rounds, {spent} of computing."


def _file_name(folder: str) -> str:
    return folder.strip("/.").replace("/", "-") or "runs"
