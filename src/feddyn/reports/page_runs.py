"""What the page knows of a run: a document with its setting, its series, its devices' figures and its split."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w

from feddyn.metrics import directions
from feddyn.records.reader import RunRecord
from feddyn.views.differences import MOST, flat, words
from feddyn.views.tables import duration

Document: TypeAlias = dict[str, Any]
POINTS, DEVICES = 1000, 100
"""Rounds, and devices of a distribution or split, that are drawn of a run; of more, so many of them."""


@dataclass(frozen=True)
class Member:
    """A run in a group: what it is called there, and how far it is."""

    run: Document
    label: str
    status: str


@dataclass(frozen=True)
class Section:
    """Runs that the page shows together, with what their figure that counts should reach, and the dotted keys that
    a search tried values of."""

    name: str
    members: Sequence[Member]
    targets: Sequence[float] = ()
    swept: Sequence[str] = ()


def of_record(record: RunRecord) -> Document:
    """A run that has a record."""
    series = {name: values for name, values in record.columns.items() if name not in ("bytes_up", "bytes_down")}
    series["bytes"] = [line["bytes_up"] + line["bytes_down"] for line in record.history]
    if elapsed := record.elapsed:
        series["seconds"] = list(elapsed)
    kept = _kept(record)
    model, metric = record.headline
    document = _document(record.path, record.setting, f"models.{model}.{metric}") | {
        "rounds": len(record.history),
        "time": duration(record.seconds),
        "seconds": record.seconds,
        "setting": record.text,
        "series": {name: [_short(values[row]) for row in kept] for name, values in series.items()},
    }
    if ends := _ends(record.on_devices):
        document["devices"] = ends
    if record.classes:
        places = _spaced(len(record.classes), DEVICES)
        names = record.on_devices["device"]
        document["split"] = {
            "devices": [names[k] for k in places],
            "samples": [record.classes[k] for k in places],
            "of": len(record.classes),
        }
    return document


def of_trial(path: Path, method: str, trial: Mapping[str, Any]) -> Document:
    """A candidate of a search that has no record: it trained in a batch, whose figures are those of the model `all`."""
    setting = trial["setting"] or {"algorithm": {"name": method}}
    values = {**flat(setting), **trial["candidate"]}
    text = tomli_w.dumps(trial["setting"]) or "".join(f"{key} = {json.dumps(one)}\n" for key, one in values.items())
    curve = trial["curve"]
    kept = _spaced(len(curve.get("round", ())), POINTS)
    names = {name: name if name in ("round", "transmitted") else f"models.all.{name}" for name in curve}
    return _document(path, setting, f"models.all.{trial['metric']}") | {
        "values": {key: words(key, value, MOST) for key, value in values.items()},
        "rounds": trial["rounds"],
        "time": "-",
        "seconds": 0,
        "setting": text,
        "series": {names[name]: [_short(column[row]) for row in kept] for name, column in curve.items()},
    }


def _document(path: Path, setting: Mapping[str, Any], figure: str) -> Document:
    return {
        "id": hashlib.sha256(str(path).encode()).hexdigest()[:10],
        "name": path.name,
        "seed": setting.get("seed", 0),
        "figure": figure,
        "better": directions(setting),
        "values": {key: words(key, value, MOST) for key, value in flat(setting).items()},
    }


def _kept(record: RunRecord) -> list[int]:
    """The rounds that are drawn: all, or evenly spaced ones of all and of the evaluated, and the best."""
    every, evaluated = range(len(record.history)), [row for row, line in enumerate(record.history) if "models" in line]
    best = evaluated[record.figures.index(record.best)]
    chosen = {*_spaced(len(every), POINTS), *(evaluated[place] for place in _spaced(len(evaluated), POINTS)), best}
    return sorted(chosen)


def _spaced(count: int, most: int) -> list[int]:
    """At most so many places of a list, evenly spaced, the first and the last among them."""
    return list(range(count)) if count <= most else [round(i * (count - 1) / (most - 1)) for i in range(most)]


def _ends(columns: Mapping[str, Sequence[Any]]) -> Document:
    """The last figures of the devices that have them, each in order: the figure, and the share of devices up to it."""
    found = {}
    for name in (name for name in columns if name not in ("device", "samples")):
        known = [k for k, value in enumerate(columns[name]) if not math.isnan(value)]
        order = sorted(known, key=lambda k: columns[name][k])
        places = _spaced(len(order), DEVICES)
        found[name] = {
            "device": [columns["device"][order[place]] for place in places],
            "value": [_short(columns[name][order[place]]) for place in places],
            "share": [_short((place + 1) / len(order)) for place in places],
        }
    return found


def _short(value: float | None) -> float | None:
    """Six digits are enough to be drawn."""
    return value if value is None or isinstance(value, int) else float(f"{value:.6g}")
