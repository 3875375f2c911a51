"""A whole report from the records below some directories: tables, figures and the page."""

import itertools
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from feddyn.errors import FeddynError, InputError
from feddyn.paper.catalogue import experiments
from feddyn.records.reader import RunRecord, find, read
from feddyn.reports import candidates, own, page
from feddyn.reports.curves import best_values, curves_over_rounds
from feddyn.reports.paper import table
from feddyn.reports.records import Curve, Entry, Group, entries
from feddyn.reports.shown import Document, Member, Section, of_record
from feddyn.search.driver import FILE as TRIALS
from feddyn.settings.documents import slug
from feddyn.views.differences import HASH, differing
from feddyn.views.tables import Table, duration, visible

LONGEST = 200
"""Bytes of a file's name; no file system has less."""


class Report(NamedTuple):
    """What was written, and what could not be and why."""

    tables: list[Table]
    files: list[Path]
    missing: list[str]


class Material(NamedTuple):
    """What a report is made of: tables and groups of runs by the names of their files, what the page shows, and what
    could not be read and why."""

    tables: Mapping[str, Table]
    groups: Mapping[str, Group]
    page: Document
    missing: list[str]


def make(directories: Sequence[Path], out: Path) -> Report:
    """Write tables (Markdown, LaTeX, CSV), figures (PDF, PNG) and index.html over those of an earlier report."""
    tables, groups, shown, missing = gather(directories, out)
    if not tables and not shown["runs"]:
        why = f" ({'; '.join(missing)})" if missing else ""
        raise InputError(f"there is no record of a run in {', '.join(map(str, directories))}{why}")
    files = [path for name, made in tables.items() for path in made.save(out / "tables", name)]
    try:
        for name, group in groups.items():
            files += curves_over_rounds(group, out / "figures", name)
            if name.startswith("alpha-") and group.name.startswith("alpha: "):
                files += best_values(group, out / "figures", "alpha-best")
        text = page.html(shown)
        out.mkdir(parents=True, exist_ok=True)
        (out / "index.html").write_text(text, encoding="utf-8")
        files.append(out / "index.html")
    except FeddynError as error:
        missing.append(str(error))
    return Report(list(tables.values()), files, missing)


def gather(
    directories: Sequence[Path],
    out: Path | None = None,
    read: Callable[[Path], RunRecord] = read,
    shown: Callable[[RunRecord], Document] = of_record,
) -> Material:
    """Read all there is in or below some directories but for what an earlier report wrote to `out`. Who gathers again
    and again brings a way to `read` records, and one to make documents of them, that remember what is unchanged."""
    records, missing = find(directories, read)
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
    sections = [
        Section(group.name, [Member(shown(one.record), one.label, one.status) for one in group.curves], group.targets)
        for group in groups.values()
    ]
    searches, settings = candidates.sections(directories, records, shown, missing)
    hashes = {key for group in groups.values() for key in group.keys}
    differ = differing([*(record.setting for record in records), *settings])
    keys = [key for key in differ if not key.endswith(HASH) or key in hashes]
    about = _about(records, len(settings))
    known = page.data([*sections, *searches], tables.values(), keys, about, missing)
    return Material(tables, groups, known, missing)


def _curves(found: Sequence[Entry]) -> list[Curve]:
    return [Curve(entry.job.label, entry.seed, entry.record, entry.status) for entry in found]


def _made_before(directories: Sequence[Path], out: Path | None) -> list[Path]:
    """The tables that `feddyn reproduce` and `feddyn sweep` made besides runs."""
    files = list[Path]()
    for directory in directories:
        files += [directory / name / "table.csv" for name in ("synthetic", "heterogeneity")]
        files += sorted(trials.parent / "candidates.csv" for trials in directory.rglob(TRIALS))
    return [file for file in files if file.exists() and out not in file.parents]


def _about(records: Sequence[RunRecord], batched: int) -> str:
    spent = duration(sum(record.seconds for record in records))
    runs = "1 run" if len(records) == 1 else f"{len(records)} runs"
    words = f"{runs}, {sum(len(record.history) for record in records):,} rounds, {spent} of computing"
    return f"{words}; and {batched} candidates of searches that trained in batches." if batched else f"{words}."


def _file_name(folder: Path) -> str:
    """File name for the figures and tables of a folder; of a long path, its end."""
    name = "-".join(part for part in folder.parts if part.strip("/.")) or folder.resolve().name or "runs"
    return visible(name).encode()[-LONGEST:].decode(errors="ignore")


def _free(name: str, taken: Container[str]) -> str:
    """The name, numbered if it is taken."""
    names = (name if number == 1 else f"{name}-{number}" for number in itertools.count(1))
    return next(free for free in names if free not in taken)
