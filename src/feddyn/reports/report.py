"""A whole report from the records below some directories: tables, figures and the page."""

import itertools
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

from feddyn.errors import FeddynError, InputError
from feddyn.metrics import reaches
from feddyn.paper.catalogue import experiments
from feddyn.records.comparison import read_comparison
from feddyn.records.reader import RunRecord
from feddyn.reports.curves import best_values, curves_over_rounds
from feddyn.reports.page import write
from feddyn.reports.paper import table
from feddyn.reports.records import Curve, Entry, Group, entries, find
from feddyn.search.driver import FILE as TRIALS
from feddyn.settings.documents import slug
from feddyn.views.tables import Table, duration, transmitted, visible

LONGEST = 200
"""Bytes of a file's name; no file system has less."""


class Report(NamedTuple):
    """What was written, and what could not be and why."""

    tables: list[Table]
    files: list[Path]
    missing: list[str]


def make(directories: Sequence[Path], out: Path) -> Report:
    """Write tables (Markdown, LaTeX, CSV), figures (PDF, PNG) and index.html over those of an earlier report."""
    records, missing = find(directories)
    tables, groups = dict[str, Table](), dict[str, Group]()
    taken = set[Path]()
    for name, experiment in experiments().items():
        found = entries(experiment, records)
        if found:
            tables[name] = table(experiment, found)
            taken |= {entry.record.path for entry in found}
        for row in experiment.rows:
            if mine := [entry for entry in found if entry.job.row == row]:
                groups[f"{name}-{row}"] = Group(f"{name}: {row}", _curves(mine), mine[0].job.targets)
    for folder, others in _comparisons([record for record in records if record.path not in taken], missing):
        name = _free(_file_name(folder), {*tables, *groups})
        groups[name] = Group(str(folder), others)
        tables[name] = _own(str(folder), others)
    for file in _made_before(directories, out):
        name = file.parent.resolve().name
        try:
            tables[_free(name, tables)] = Table.load(file, name)
        except InputError as error:
            missing.append(str(error))
    if not tables:
        why = f" ({'; '.join(missing)})" if missing else ""
        raise InputError(f"there is no record of a run in {', '.join(map(str, directories))}{why}")
    files = [path for name, made in tables.items() for path in made.save(out / "tables", name)]
    try:
        for name, group in groups.items():
            files += curves_over_rounds(group, out / "figures", name)
            if name.startswith("alpha-") and group.name.startswith("alpha: "):
                files += best_values(group, out / "figures", "alpha-best")
        write(out / "index.html", list(groups.values()), list(tables.values()), _about(records))
        files.append(out / "index.html")
    except FeddynError as error:
        missing.append(str(error))
    return Report(list(tables.values()), files, missing)


def _curves(found: Sequence[Entry]) -> list[Curve]:
    return [Curve(entry.job.label, entry.seed, entry.record, entry.status) for entry in found]


def _comparisons(records: Sequence[RunRecord], missing: list[str]) -> list[tuple[Path, list[Curve]]]:
    """Runs that are not the paper's: those of a comparison or a search together, others each for themselves."""
    folders, labels = dict[Path, list[Curve]](), dict[Path, dict[str, str]]()
    for record in records:
        parent, name = record.path.parent, record.path.resolve().name
        if parent not in labels:
            labels[parent] = _labels(parent, missing)
        folder = parent if labels[parent] or (parent / TRIALS).exists() else record.path
        curve = Curve(labels[parent].get(name, name), record.setting.get("seed", 0), record, record.status)
        folders.setdefault(folder, []).append(curve)
    return list(folders.items())


def _labels(folder: Path, missing: list[str]) -> dict[str, str]:
    """What a comparison calls its runs, by directory."""
    try:
        return {slug(label): label for label, _ in read_comparison(folder)}
    except InputError as error:
        missing.append(str(error))
        return {}


def _own(title: str, curves: Sequence[Curve]) -> Table:
    rows = []
    for curve in curves:
        record, target = curve.record, curve.record.setting.get("target")
        last, (_, metric) = record.evaluated[-1], record.headline
        goal, count = "-", "-"
        if target:
            hits = [reaches(figure, target["value"], record.better) for figure in record.figures]
            reached = next((line for line, hit in zip(record.evaluated, hits, strict=True) if hit), None)
            count = transmitted(reached["transmitted"] if reached else None, last["transmitted"])
            goal = f"{metric} {target['value']:.4g}"
        ran = [curve.label, str(curve.seed), record.status, str(len(record.history))]
        rows.append([*ran, goal, count, f"{metric} {record.figures[-1]:.4f}", duration(record.seconds)])
    columns = ["method", "seed", "status", "rounds", "target", "models transmitted until then", "at the end", "time"]
    return Table(title, columns, rows)


def _made_before(directories: Sequence[Path], out: Path) -> list[Path]:
    """The tables that `feddyn reproduce` and `feddyn sweep` made besides runs."""
    files = list[Path]()
    for directory in directories:
        files += [directory / name / "table.csv" for name in ("synthetic", "heterogeneity")]
        files += sorted(trials.parent / "candidates.csv" for trials in directory.rglob(TRIALS))
    return [file for file in files if file.exists() and out not in file.parents]


def _about(records: Sequence[RunRecord]) -> str:
    spent = duration(sum(record.seconds for record in records))
    return f"{len(records)} runs, {sum(len(record.history) for record in records):,} rounds, {spent} of computing."


def _file_name(folder: Path) -> str:
    """File name for the figures and tables of a folder; of a long path, its end."""
    name = "-".join(part for part in folder.parts if part.strip("/.")) or folder.resolve().name or "runs"
    return visible(name).encode()[-LONGEST:].decode(errors="ignore")


def _free(name: str, taken: Container[str]) -> str:
    """The name, numbered if it is taken."""
    names = (name if number == 1 else f"{name}-{number}" for number in itertools.count(1))
    return next(free for free in names if free not in taken)
