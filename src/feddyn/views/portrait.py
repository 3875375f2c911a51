"""One run in words and figures."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from feddyn.errors import InputError
from feddyn.metrics import Better, best, directions
from feddyn.records.labels import LABELS
from feddyn.records.recorded import Recorded
from feddyn.views.differences import WIRES, compressor, flat, method, words
from feddyn.views.naming import named
from feddyn.views.tables import Table, duration, figure, sparkline, volume

LISTED = 20
"""Devices that are shown, the worst ones, where there are more."""


def portrait(run: Recorded) -> list[Table]:
    """A run as tables: what was run and what came of it, the models' figures, and the norms of states."""
    tables = [_about(run)]
    if run.evaluated:
        tables.append(_models(run))
    if norms := _norms(run):
        tables.append(norms)
    if run.evaluated and run.evaluated[-1].get("on_devices"):
        tables.append(_spread(run.evaluated[-1]["on_devices"]))
    return tables


def _about(run: Recorded) -> Table:
    setting = run.setting
    rows = [[name, _part(setting.get(key))] for name, key in PARTS.items() if key in setting]
    rows += [[name, compressor(setting[name])] for name in WIRES if name in setting]
    rows.append(["status", f"{run.outcome}, {len(run.history)} of {setting.get('rounds', '?')} rounds"])
    if run.message:
        rows.append(["", run.message])
    if run.evaluated:
        model, metric = run.headline
        first = f"{figure(run.initial[model][metric])} -> " if metric in run.initial.get(model, {}) else ""
        at = run.evaluated[run.figures.index(run.best)]["round"]
        rows.append([named(metric, model), f"{first}{figure(run.figures[-1])}, best {figure(run.best)} in round {at}"])
    if target := setting.get("target"):
        hit = run.first_at(target["value"]) if run.evaluated else None
        when = f"reached in round {hit['round']}, {hit['transmitted']} models transmitted" if hit else "not reached"
        rows.append(["target", f"{target['metric']} {target['value']:.4g}: {when}"])
    if run.history:
        last = run.history[-1]
        sent = f"{volume(last['bytes_up'])} up, {volume(last['bytes_down'])} down"
        rows.append(["sent", f"{last['transmitted']} models a device, {sent} by all"])
    if run.seconds:
        rows.append(["time", duration(run.seconds)])
    return Table(method(setting), ["what", "is"], rows)


PARTS = {
    "method": "algorithm",
    "solver": "solver",
    "model": "model",
    "data": "population",
    "loss": "loss",
    "participation": "participation",
    "links": "links",
    "seed": "seed",
}


UNTOLD = ("name", "source", "memory", "sha256", "test_sha256", "encoding", "unseen")
"""Keys that are said otherwise, or that are of no use to a reader."""


def _part(part: object) -> str:
    """A table of a setting in one line: its name, then its other values."""
    if not isinstance(part, Mapping):
        return words("", part)
    rest = {key: value for key, value in flat(part).items() if key.partition(".")[0] not in UNTOLD}
    name = str(part.get("name", part.get("source", "in memory" if part.get("memory") else "")))
    listed = ", ".join(f"{key} {words(key, value)}" for key, value in rest.items())
    return ": ".join(piece for piece in (LABELS.get(name, name), listed) if piece)


def _models(run: Recorded) -> Table:
    better, rows = directions(run.setting), []
    for model, figures in run.evaluated[-1]["models"].items():
        for metric in figures:
            values = [line["models"][model][metric] for line in run.evaluated]
            ends = [figure(values[0]), figure(values[-1]), figure(best(values, better[metric]))]
            rows.append([model, metric, *ends, sparkline(values)])
    return Table("models", ["model", "figure", "first", "last", "best", "curve"], rows)


def _norms(run: Recorded) -> Table | None:
    rows = []
    for kind, whose in (("norms", "server"), ("devices", "devices, mean"), ("broadcast", "broadcast")):
        for name in run.history[-1].get(kind, {}) if run.history else ():
            values = [line[kind][name] for line in run.history if name in line.get(kind, {})]
            rows.append([whose, name, figure(values[0]), figure(values[-1]), sparkline(values)])
    return Table("norms", ["whose", "of", "first", "last", "curve"], rows) if rows else None


def _spread(spread: Mapping[str, Mapping[str, float]]) -> Table:
    names = list(next(iter(spread.values())))
    rows = [[metric, *(figure(row[name]) for name in names)] for metric, row in spread.items()]
    return Table("the server's model on the devices' own samples", ["figure", *names], rows)


def devices(columns: Mapping[str, Sequence[Any]], metric: str | None, better: Better) -> Table:
    """Devices with their figures, the worst by a metric first, those without one last."""
    if not columns:
        raise InputError("the record does not list its devices: there are too many, or the run has not ended yet")
    count = len(next(iter(columns.values())))
    order = list(range(count))
    if metric is not None:
        sign, values = 1 if better == "higher" else -1, columns[metric]
        order.sort(key=lambda k: (math.isnan(values[k]), sign * values[k]))
    shown = order[:LISTED]
    rows = [[_cell(columns[name][k]) for name in columns] for k in shown]
    left = [] if len(shown) == count else [f"The worst {len(shown)} of {count} devices."]
    return Table("devices", list(columns), rows, left)


def _cell(value: object) -> str:
    return figure(value) if isinstance(value, float) else str(value)
