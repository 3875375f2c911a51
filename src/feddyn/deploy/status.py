"""How far a federation is: what its ledger, its record and its events say. Needs neither torch nor Flower."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from feddyn.errors import InputError
from feddyn.flower import ledger as ledgers
from feddyn.records.layout import Status as Ended
from feddyn.records.lines import read_lines, read_rounds, strictly, table
from feddyn.records.lock import in_use
from feddyn.views.tables import Table

SHOWN = 10
"""How many of the last events are shown."""


class Status(NamedTuple):
    """A sentence, the sites, and what happened last."""

    sentence: str
    sites: Table
    events: Table


def status(directory: Path) -> Status:
    """The federation in a directory, or in the server's folder of a deployment."""
    places = [directory, directory / "server" / "federation", directory / "federation"]
    place = next((path for path in places if (path / ledgers.FILE).exists()), None)
    ledger = ledgers.read(place) if place else None
    if place is None or ledger is None:
        raise InputError(
            f"there is no federation in {directory} (yet: server/run.sh begins it); give the deployment's folder"
        )
    history = read_rounds(place / "rounds.jsonl")[: ledger.round]
    last: dict[int, int] = {number: line["round"] for line in history for number in line["active"]}
    rows = []
    for name, site in sorted(ledger.sites.items(), key=lambda item: item[1].number):
        counted = sum(site.number in line["active"] for line in history)
        seen = str(last[site.number]) if site.number in last else "never"
        rows.append([str(site.number), name, str(site.samples), str(counted), seen, site.refused])
    columns = ["number", "site", "samples", "rounds counted", "last", "refused"]
    happened = read_lines(place / ledgers.EVENTS, dict)
    events = [_told(event, count) for event, count in _runs(happened)[-SHOWN:]]
    sentence = f"federation {ledger.federation}: round {ledger.round} is counted, session {ledger.session}"
    needed = max((event["least"] for event in happened if event.get("event") == "waiting for sites"), default=0)
    if ledger.round == 0 and len(rows) < needed:
        sentence += f"; waiting for {needed - len(rows)} of {needed} sites"
    sentence += f"; {_work(place)}"
    if history and "models" in history[-1]:
        figures = history[-1]["models"]["server"]
        sentence += "; the server's model: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
    return Status(sentence, Table("sites", columns, rows), Table("last events", ["when", "what", "of whom"], events))


def _work(place: Path) -> str:
    """Whether a server's app is at work, and how the last one ended where none is."""
    if in_use(place):
        return "a server's app is at work"
    summary: Mapping[str, Any] = {}
    with suppress(OSError, ValueError, RecursionError):
        summary = table(strictly((place / "summary.json").read_bytes()), "it")
    if summary.get("status") == Ended.FINISHED:
        return "all rounds that were asked for are counted"
    why = f" (the last one stopped: {summary['message']})" if summary.get("message") else ""
    return f"no server's app is at work{why}: sh server/run.sh goes on"


def _runs(happened: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], int]]:
    """Events, those of one kind and site that follow each other as the last of them, with their number."""
    found = list[tuple[Mapping[str, Any], int]]()
    for event in happened:
        one = (event.get("event"), event.get("site"), event.get("why"))
        last, count = found[-1] if found else ({}, 0)
        if found and (last.get("event"), last.get("site"), last.get("why")) == one:
            found[-1] = (event, count + 1)
        else:
            found.append((event, 1))
    return found


def _told(event: Mapping[str, Any], count: int) -> list[str]:
    rest = [f"{name} {value}" for name, value in event.items() if name not in ("time", "event")]
    times = f" ({count} times)" if count > 1 else ""
    return [str(event.get("time", "")), f"{event.get('event', '')}{times}", ", ".join(rest)]
