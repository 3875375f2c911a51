"""The candidates of searches as runs of the page: those with records, and those that trained as one batch."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from feddyn.errors import InputError
from feddyn.records.labels import LABELS
from feddyn.records.reader import RunRecord, checked
from feddyn.reports.page_runs import Document, Member, Section, of_trial
from feddyn.search.driver import FILE, trials
from feddyn.views.differences import FEW, digits, short, words


def sections(
    directories: Sequence[Path],
    records: Sequence[RunRecord],
    shown: Callable[[RunRecord], Document],
    missing: list[str],
) -> tuple[list[Section], list[Mapping[str, Any]]]:
    """A group for each search below some directories, and the settings of those of its candidates that have no records.
    A damaged search is added to `missing`."""
    at = {record.path.resolve(): record for record in records}
    folders = {file.parent.resolve(): file.parent for place in directories for file in sorted(place.rglob(FILE))}
    found, settings = [], list[Mapping[str, Any]]()
    for folder in folders.values():
        try:
            known = trials(folder)
            for trial in known.values():
                checked(trial["setting"])
        except ValueError as error:  # InputError is one
            why = str(error) if isinstance(error, InputError) else f"{folder / FILE} is damaged: {error}"
            missing.append(why)
            continue
        members, counts = [], digits([trial["candidate"] for trial in known.values()])
        swept = dict.fromkeys(key for trial in known.values() for key in trial["candidate"])
        for name, trial in known.items():
            path, method = folder / name, name.rpartition("-")[0]
            if record := at.get(path.resolve()):
                run = shown(record)
            elif trial["curve"].get("round"):
                run = of_trial(path, method, trial)
                settings.append(trial["setting"])
            else:
                continue  # it diverged in its first round: there is nothing to draw
            members.append(Member(run, _label(method, trial["candidate"], counts), trial["status"]))
        if members:
            goals = {trial["setting"].get("target", {}).get("value") for trial in known.values()} - {None}
            found.append(Section(f"search: {folder}", members, sorted(goals), list(swept)))
    return found, settings


def _label(method: str, changes: Mapping[str, Any], counts: Mapping[str, int]) -> str:
    names = short(list(changes))
    tried = [f"{names[key]} {words(key, value, counts.get(key, FEW))}" for key, value in changes.items()]
    return ", ".join([LABELS.get(method, method), *tried])
