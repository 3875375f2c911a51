"""Reading records: runs that ended, go on or were interrupted, checked so that whoever has one need not look again."""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from feddyn.errors import InputError
from feddyn.metrics import Figures, directions
from feddyn.records.layout import CLASSES, DEVICES, INPUTS, MODELS, Status, is_record, require_unchanged
from feddyn.records.lines import count, figure, read_lines, read_rounds, strictly, table, text
from feddyn.records.machine import FIELDS
from feddyn.records.recorded import Recorded


@dataclass(frozen=True)
class RunRecord(Recorded):
    """A run as its record has it: the setting as text and as a document, a line a round, how it ended, how many seconds
    it took, in all and in each round, and how many samples of each class every device has (empty: nobody knows)."""

    path: Path
    text: str = field(repr=False)
    setting: Mapping[str, Any] = field(repr=False)
    history: Sequence[Mapping[str, Any]] = field(repr=False)
    status: Status
    message: str
    seconds: float
    initial: Mapping[str, Figures] = field(default_factory=dict, repr=False)
    on_devices: Mapping[str, Sequence[Any]] = field(default_factory=dict, repr=False)
    spent: Mapping[int, float] = field(default_factory=dict, repr=False)
    classes: Sequence[Sequence[int]] = field(default=(), repr=False)

    @property
    def elapsed(self) -> list[float]:
        """The seconds until the end of every round; empty: those of some round are not known."""
        known = [self.spent[line["round"]] for line in self.history if line["round"] in self.spent]
        return list(accumulate(known)) if len(known) == len(self.history) else []

    @property
    def inputs(self) -> dict[str, Any]:
        """How samples became the model's input; empty: the record is too old to say."""
        return _optional(self.path / INPUTS)

    @property
    def sessions(self) -> list[dict[str, str]]:
        """When the run was started and resumed (`at`), and what it was computed with, as far as its record says it."""
        return [found for found in read_lines(self.path / "timings.jsonl", _session) if found]

    @property
    def weights(self) -> Path:
        """The file with the flat vectors after the last round."""
        return self.path / MODELS


def read(path: Path) -> RunRecord:
    """One record, all of it as it should be."""
    try:
        words = (path / "setting.toml").read_text(encoding="utf-8")
        setting, history = checked(tomllib.loads(words)), read_rounds(path / "rounds.jsonl")
        require_unchanged(path, setting)
        spent = _spent(path)
        status, message, initial = Status.RUNNING, "", dict[str, Any]()
        if (path / "summary.json").exists():
            summary = table(strictly((path / "summary.json").read_bytes()), "summary.json")
            status, message = Status(text(summary, "status")), text(summary, "message")
            initial = table(summary.get("initial", {}), "initial")
            for model, figures in initial.items():
                for name in table(figures, f"the initial model {model!r}"):
                    figure(figures, name)
        devices = _columns(_optional(path / DEVICES))
        classes = _counts(_optional(path / CLASSES), devices)
        took = sum(spent.values())
        record = RunRecord(path, words, setting, history, status, message, took, initial, devices, spent, classes)
        if record.evaluated:
            model, metric = record.headline
            figure(table(record.evaluated[0]["models"].get(model), f"the model {model!r}"), metric)
    except (OSError, ValueError, RecursionError) as error:  # InputError is a ValueError
        raise InputError(f"the record in {path} is damaged: {error}") from None
    return record


def _optional(file: Path) -> dict[str, Any]:
    """A file with a table, empty where there is none."""
    try:
        return table(strictly(file.read_bytes()), "it") if file.exists() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}") from None


def _columns(devices: dict[str, Any]) -> dict[str, list[Any]]:
    """Columns that have all one entry for each device, and those of figures numbers, NaN where a device has none."""
    for name, column in devices.items():
        if not isinstance(column, list) or len(column) != len(devices.get("device", ())):
            raise ValueError(f"the column {name} of {DEVICES} has not an entry for each device")
        check = {"device": text, "samples": count}.get(name)
        for place, value in enumerate(column):
            if check:
                check({name: value}, name)
            else:
                column[place] = math.nan if value is None else figure({name: value}, name)
    return devices


def _counts(classes: dict[str, Any], devices: Mapping[str, Sequence[Any]]) -> list[list[int]]:
    """A row for each listed device, all of one length, of counts that add up to its samples."""
    rows: list[list[int]] = classes.get("samples", []) if devices else []
    if classes and (not isinstance(rows, list) or not all(isinstance(row, list) for row in rows)):
        raise ValueError(f"{CLASSES} has no table of samples")
    sums = [sum(count({"samples": number}, "samples") for number in row) for row in rows]
    if rows and (len({len(row) for row in rows}) > 1 or sums != devices.get("samples")):
        raise ValueError(f"the samples in {CLASSES} are not those of {DEVICES}")
    return rows


def find(directories: Sequence[Path], read: Callable[[Path], RunRecord] = read) -> tuple[list[RunRecord], list[str]]:
    """All records in or below some directories, in order, and why others were left out: damaged ones, and those of runs
    that were not evaluated yet. Who looks again and again brings a `read` of his own."""
    found, left_out = dict[Path, RunRecord](), []
    for directory in directories:
        if not directory.is_dir():
            raise InputError(f"there is no directory {directory}: give directories with records of runs")
        for path in sorted(file.parent for file in directory.rglob("setting.toml") if is_record(file.parent)):
            try:
                record = read(path)
            except InputError as error:
                left_out.append(str(error))
                continue
            if record.evaluated:
                found[path.resolve()] = record
            else:
                left_out.append(f"{path}: {record.message or 'no round of it has been evaluated yet'}")
    return list(found.values()), left_out


def checked(setting: dict[str, Any]) -> dict[str, Any]:
    """A setting of which all that readers use is there, or may be missing."""
    count({"seed": 0, **setting}, "seed")
    for name in ("algorithm", "evaluation"):
        table(setting.get(name, {}), name)
    own = setting.get("evaluation", {}).get("metrics", [])
    for metric in own if isinstance(own, list) else [own]:
        name = text(table(metric, "a metric"), "name")
        if text(metric, "better") not in ("higher", "lower"):
            raise ValueError(f"the metric {name} is better {metric['better']!r}")
    if "target" in setting:
        target, known = table(setting["target"], "target"), directions(setting)
        text(target, "model")
        figure(target, "value")
        if text(target, "metric") not in known:
            raise ValueError(f"target.metric is {target['metric']!r}, not one of {', '.join(known)}")
    return setting


def _spent(path: Path) -> dict[int, float]:
    """The seconds of every round."""
    return {number: seconds for number, seconds in read_lines(path / "timings.jsonl", _timing) if number}


def _session(line: dict[str, Any]) -> dict[str, str]:
    """The beginning of a session; empty: the line is of a round."""
    begun = [text(line, word) for word in ("started", "resumed") if word in line]
    return {"at": begun[0], **{name: str(line[name]) for name in FIELDS if name in line}} if begun else {}


def _timing(line: dict[str, Any]) -> tuple[int, float]:
    """A round and its seconds; when and where a run was started or resumed is round 0."""
    return (count(line, "round"), figure(line, "seconds")) if "round" in line else (0, 0.0)
