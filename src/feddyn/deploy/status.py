"""How far a federation is: what its ledger, its record and its events say. Needs neither torch nor Flower."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from feddyn.errors import InputError
from feddyn.flower import ledger as ledgers
from feddyn.records.lines import read_lines, read_rounds
from feddyn.views.tables import Table

EVENTS = 10
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
    happened = read_lines(place / "events.jsonl", dict)
    events = [_told(event) for event in happened[-EVENTS:]]
    sentence = f"federation {ledger.federation}: round {ledger.round} is counted, session {ledger.session}"
    needed = max((event["least"] for event in happened if event.get("event") == "waiting for sites"), default=0)
    if ledger.round == 0 and len(rows) < needed:
        sentence += f"; waiting for {needed - len(rows)} of {needed} sites"
    if history and "models" in history[-1]:
        figures = history[-1]["models"]["server"]
        sentence += "; the server's model: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
    return Status(sentence, Table("sites", columns, rows), Table("last events", ["when", "what", "of whom"], events))


def _told(event: Mapping[str, Any]) -> list[str]:
    rest = [f"{name} {value}" for name, value in event.items() if name not in ("time", "event")]
    return [str(event.get("time", "")), str(event.get("event", "")), ", ".join(rest)]
