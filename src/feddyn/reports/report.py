"""A whole report from the records below some directories: tables, figures and the page."""

import itertools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from feddyn.errors import FeddynError, InputError
from feddyn.paper.catalogue import experiments
from feddyn.records.reader import RunRecord, find, read
from feddyn.reports import candidates, comparisons, page
from feddyn.reports.curves import best_values, curves_over_rounds
from feddyn.reports.page_runs import Document, Member, Section, of_record
from feddyn.reports.paper import table
from feddyn.reports.records import Curve, Entry, Group, entries
from feddyn.search.driver import FILE as TRIALS
from feddyn.settings.documents import slug
from feddyn.views.differences import HASH, differing, ordered
from feddyn.views.tables import Table, duration, visible

LONGEST = 200
"""Bytes of a file's name; no file system has less."""


class Report(NamedTuple):
    """The tables, as a terminal shows them, what was written, and what could not be and why."""

    tables: list[Table]
    files: list[Path]
    missing: list[str]


class Material(NamedTuple):
    """What a report is made of, by the names of the files: tables, the form that some of them have on a terminal, and
    groups of runs; then what the page shows, and what could not be read and why."""

    tables: Mapping[str, Table]
    brief: Mapping[str, Table]
    groups: Mapping[str, Group]
    page: Document
    missing: list[str]


def make(directories: Sequence[Path], out: Path) -> Report:
    """Write tables (Markdown, LaTeX, CSV), figures (PDF, PNG) and index.html over those of an earlier report."""
    tables, brief, groups, shown, missing = gather(directories, out)
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
    return Report([brief.get(name, made) for name, made in tables.items()], files, missing)


def gather(
    directories: Sequence[Path],
    out: Path | None = None,
    read: Callable[[Path], RunRecord] = read,
    shown: Callable[[RunRecord], Document] = of_record,
) -> Material:
    """Read all there is in or below some directories but for what an earlier report wrote to `out`. Who gathers again
    and again brings a way to `read` records, and one to make documents of them, that remember what is unchanged."""
    records, missing = find(directories, read)
    tables, brief, groups = dict[str, Table](), dict[str, Table](), dict[str, Group]()
    taken = set[Path]()
    for name, experiment in experiments().items():
        found = entries(experiment, records)
        if found:
            tables[name] = table(experiment, found)
            taken |= {entry.record.path for entry in found}
        for row in experiment.rows:
            if mine := [entry for entry in found if entry.job.row == row]:
                groups[f"{name}-{row}"] = Group(f"{name}: {row}", _curves(mine), mine[0].job.targets)
    for folder, group, *made in comparisons.groups([record for record in records if record.path not in taken], missing):
        name = _free(_file_name(folder) if folder else slug(group.name), {*tables, *groups})
        groups[name], (tables[name], brief[name]) = group, made
    for file in _made_before(directories, out):
        name = file.parent.resolve().name
        try:
            tables[_free(name, tables)] = Table.load(file, name)
        except InputError as error:
            missing.append(str(error))
    searches, settings = candidates.sections(directories, records, shown, missing)
    every = [*(record.setting for record in records), *settings]
    hashes = {key for group in groups.values() for key in group.keys}
    keys = [key for key in differing(every) if not key.endswith(HASH) or key in hashes]
    sections = _sections(groups.values(), searches, shown)
    known = page.data(sections, tables.values(), ordered(keys, every), _about(records, len(settings)), missing)
    return Material(tables, brief, groups, known, missing)


def _sections(
    groups: Iterable[Group], searches: Sequence[Section], shown: Callable[[RunRecord], Document]
) -> list[Section]:
    """Groups and searches; last, so that a run is rather said to be of any other one, all runs."""
    made = []
    for group in groups:
        members = [Member(shown(one.record), one.label, one.status) for one in group.curves]
        made.append(Section(group.name, members, group.targets))
    last = [section for section in made if section.name.startswith(comparisons.ALL)]
    return [*(section for section in made if section not in last), *searches, *last]


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
    count = sum(len(record.history) for record in records)
    words = f"{runs}, {'1 round' if count == 1 else f'{count:,} rounds'}, {spent} of computing"
    more = "1 candidate of a search that trained in a batch" if batched == 1 else f"{batched} candidates of searches"
    more += "" if batched == 1 else " that trained in batches"
    return f"{words}; and {more}." if batched else f"{words}."


def _file_name(folder: Path) -> str:
    """File name for the figures and tables of a folder; of a long path, its end."""
    name = "-".join(part for part in folder.parts if part.strip("/.")) or folder.resolve().name or "runs"
    return visible(name).encode()[-LONGEST:].decode(errors="ignore")


def _free(name: str, taken: Container[str]) -> str:
    """The name, numbered if it is taken."""
    names = (name if number == 1 else f"{name}-{number}" for number in itertools.count(1))
    return next(free for free in names if free not in taken)
