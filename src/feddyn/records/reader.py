"""Reading records: runs that ended, go on or were interrupted, checked so that whoever has one need not look again."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddyn.errors import InputError
from feddyn.metrics import Better, best, directions, headline
from feddyn.records.files import home
from feddyn.records.layout import Status, require_unchanged
from feddyn.records.lines import COUNTS, count, figure, read_lines, read_rounds, strictly, table, text

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class RunRecord:
    """A run as its record has it: the setting as text and as a document, a line a round, how it ended, and how many
    seconds it took."""

    path: Path
    text: str = field(repr=False)
    setting: Mapping[str, Any] = field(repr=False)
    history: Sequence[Mapping[str, Any]] = field(repr=False)
    status: Status
    message: str
    seconds: float

    @property
    def evaluated(self) -> list[Mapping[str, Any]]:
        """The rounds with figures."""
        return [line for line in self.history if "models" in line]

    @property
    def headline(self) -> tuple[str, str]:
        """The model and the metric that count."""
        return headline(self.setting, self.evaluated[-1]["models"])

    @property
    def better(self) -> Better:
        """Whether `higher` or `lower` figures of that metric are better."""
        return directions(self.setting)[self.headline[1]]

    @property
    def figures(self) -> list[float]:
        """The figure that counts, of every evaluated round."""
        model, metric = self.headline
        return [line["models"][model][metric] for line in self.evaluated]

    @property
    def best(self) -> float:
        """The best of them."""
        return best(self.figures, self.better)

    @property
    def columns(self) -> dict[str, list[float | None]]:
        """The history as columns: counts, and every figure by its dotted name (models.all.accuracy); None where a round
        has none. For example `pandas.DataFrame(record.columns)`."""
        counts: dict[str, list[float | None]] = {name: [line[name] for line in self.history] for name in COUNTS}
        rows = [dict(dotted(line)) for line in self.history]
        names = dict.fromkeys(name for row in rows for name in row)
        return counts | {name: [row.get(name) for row in rows] for name in names}

    @property
    def devices(self) -> dict[str, list[Any]]:
        """The last figures of the server's model on each device's own samples, as columns; empty: not asked for."""
        file = self.path / "devices.json"
        try:
            return table(strictly(file.read_bytes()), "it") if file.exists() else {}
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{file} is damaged: {error}") from None

    def models(self) -> "dict[str, torch.Tensor]":
        """The flat vectors after the last round, by name; needs torch."""
        from safetensors.torch import load_file

        try:
            return load_file(self.path / "models.safetensors")
        except OSError as error:
            raise InputError(f"{self.path} has no models: {error}; a run that goes on has none yet") from None


def load(directory: str | PathLike[str]) -> RunRecord:
    """The record of a run, from its directory: what `feddyn run` or `simulate(..., out=DIR)` wrote there."""
    path = home(Path(directory))
    if not (path / "setting.toml").exists():
        raise InputError(f"there is no record of a run in {path}: a comparison has one in each of its folders")
    return read(path)


def read(path: Path) -> RunRecord:
    """One record, all of it as it should be."""
    try:
        words = (path / "setting.toml").read_text(encoding="utf-8")
        setting, history = _checked(tomllib.loads(words)), read_rounds(path / "rounds.jsonl")
        require_unchanged(path, setting)
        # rounds that were done again after a crash count once
        spent = {number: seconds for number, seconds in read_lines(path / "timings.jsonl", _timing) if number}
        status, message = Status.RUNNING, ""
        if (path / "summary.json").exists():
            summary = table(strictly((path / "summary.json").read_bytes()), "summary.json")
            status, message = Status(text(summary, "status")), text(summary, "message")
        record = RunRecord(path, words, setting, history, status, message, sum(spent.values()))
        if record.evaluated:
            model, metric = record.headline
            figure(table(record.evaluated[0]["models"].get(model), f"the model {model!r}"), metric)
    except (OSError, ValueError, RecursionError) as error:  # InputError is a ValueError
        raise InputError(f"the record in {path} is damaged: {error}") from None
    return record


def dotted(line: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Every figure of a round by its dotted name."""
    found = []
    for kind in ("models", "on_devices"):
        for name, figures in line.get(kind, {}).items():
            found += [(f"{kind}.{name}.{key}", value) for key, value in figures.items()]
    for kind in ("norms", "devices"):
        found += [(f"{kind}.{name}", value) for name, value in line.get(kind, {}).items()]
    return found


def _checked(setting: dict[str, Any]) -> dict[str, Any]:
    """A setting of which all that readers use is there, or may be missing."""
    count({"seed": 0, **setting}, "seed")
    for name in ("algorithm", "evaluation"):
        table(setting.get(name, {}), name)
    own = setting.get("evaluation", {}).get("metrics", [])
    for metric in own if isinstance(own, list) else [own]:
        if text(table(metric, "a metric"), "better") not in ("higher", "lower"):
            raise ValueError(f"the metric {text(metric, 'name')} is better {metric['better']!r}")
    if "target" in setting:
        target, known = table(setting["target"], "target"), directions(setting)
        text(target, "model")
        figure(target, "value")
        if text(target, "metric") not in known:
            raise ValueError(f"target.metric is {target['metric']!r}, not one of {', '.join(known)}")
    return setting


def _timing(line: dict[str, Any]) -> tuple[int, float]:
    """A round and its seconds; when and where a run was started or resumed is round 0."""
    return (count(line, "round"), figure(line, "seconds")) if "round" in line else (0, 0.0)
