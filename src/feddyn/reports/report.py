"""A whole report from the records below some directories: tables, figures and the page."""

import itertools
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

from feddyn.errors import FeddynError, InputError
from feddyn.paper.catalogue import experiments
from feddyn.records.reader import RunRecord, find
from feddyn.reports import own
from feddyn.reports.curves import best_values, curves_over_rounds
from feddyn.reports.page import write
from feddyn.reports.paper import table
from feddyn.reports.records import Curve, Entry, Group, entries
from feddyn.search.driver import FILE as TRIALS
from feddyn.settings.documents import slug
from feddyn.views.tables import Table, duration, visible

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
    for folder, group, made in own.groups([record for record in records if record.path not in taken], missing):
        name = _free(_file_name(folder) if folder else slug(group.name), {*tables, *groups})
        groups[name], tables[name] = group, made
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
