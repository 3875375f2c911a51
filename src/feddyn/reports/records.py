"""Records of runs as reports read them: whatever is there, of runs that ended, go on or were interrupted."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feddyn.errors import InputError
from feddyn.paper.catalogue import Experiment, Job
from feddyn.paper.study import reached
from feddyn.records.lines import count, figure, read_lines, read_rounds, strictly, table, text
from feddyn.records.record import Status

METRICS = ("loss", "accuracy", "objective")


@dataclass(frozen=True)
class Recorded:
    """A run: its setting as text and as a document, a line a round, and how long it took in seconds."""

    path: Path
    text: str = field(repr=False)
    setting: Mapping[str, Any] = field(repr=False)
    history: Sequence[Mapping[str, Any]] = field(repr=False)
    status: str
    message: str
    seconds: float

    @property
    def evaluated(self) -> list[Mapping[str, Any]]:
        """The rounds with figures."""
        return [line for line in self.history if "models" in line]

    @property
    def counts(self) -> tuple[str, str]:
        """Which model and figure count: the target's, else the mean of all devices' accuracy or, without one, loss."""
        if target := self.setting.get("target"):
            return target["model"], target["metric"]
        models = self.evaluated[-1]["models"]
        model = "all" if "all" in models else next(reversed(models))
        return model, "accuracy" if "accuracy" in models[model] else "loss"

    @property
    def figures(self) -> list[float]:
        """The figure that counts, of every evaluated round."""
        model, metric = self.counts
        return [line["models"][model][metric] for line in self.evaluated]

    @property
    def best(self) -> float:
        """The best of them."""
        return max(self.figures) if self.counts[1] == "accuracy" else min(self.figures)


@dataclass(frozen=True)
class Entry:
    """A run of an experiment of the paper."""

    job: Job
    seed: int
    record: Recorded

    @property
    def status(self) -> str:
        """Of a run that stops when it has reached what is wanted of it, and can go on."""
        if not Status(self.record.status).ended:
            wanted = self.job.targets
            done = wanted and all(reached(self.record.history, target) for target in wanted)
            return "targets reached" if done else f"paused, {self.job.document['rounds']} planned"
        return self.record.status


@dataclass(frozen=True)
class Curve:
    """A run with what to call it."""

    label: str
    seed: int
    record: Recorded
    status: str


@dataclass(frozen=True)
class Group:
    """Runs that belong into one plot, with the accuracies that they should reach."""

    name: str
    curves: Sequence[Curve]
    targets: Sequence[float] = ()


def find(directories: Sequence[Path]) -> tuple[list[Recorded], list[str]]:
    """All records in or below some directories, in order, and why others were left out: damaged ones, and those of runs
    that were not evaluated yet."""
    found, left_out = dict[Path, Recorded](), []
    for directory in directories:
        if not directory.is_dir():
            raise InputError(f"there is no directory {directory}: give directories with records of runs")
        for path in sorted(file.parent for file in directory.rglob("setting.toml")):
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


def read(path: Path) -> Recorded:
    """One record, all of it as it should be: whoever has it need not look again."""
    try:
        words = (path / "setting.toml").read_text(encoding="utf-8")
        setting, history = _checked(tomllib.loads(words)), read_rounds(path / "rounds.jsonl")
        # rounds that were done again after a crash count once
        spent = {number: seconds for number, seconds in read_lines(path / "timings.jsonl", _timing) if number}
        ending = {"status": "running", "message": ""}
        if (path / "summary.json").exists():
            summary = table(strictly((path / "summary.json").read_bytes()), "summary.json")
            ending = {name: text(summary, name) for name in ending}
        record = Recorded(path, words, setting, history, **ending, seconds=sum(spent.values()))
        if record.evaluated:
            model, metric = record.counts
            figure(table(record.evaluated[0]["models"].get(model), f"the model {model!r}"), metric)
    except (OSError, ValueError, RecursionError) as error:  # InputError is a ValueError
        raise InputError(f"the record in {path} is damaged: {error}") from None
    return record


def _checked(setting: dict[str, Any]) -> dict[str, Any]:
    """A setting of which all that reports use is there, or may be missing."""
    count({"seed": 0, **setting}, "seed")
    table(setting.get("algorithm", {}), "algorithm")
    if "target" in setting:
        target = table(setting["target"], "target")
        text(target, "model")
        figure(target, "value")
        if text(target, "metric") not in METRICS:
            raise ValueError(f"target.metric is {target['metric']!r}, not one of {', '.join(METRICS)}")
    return setting


def _timing(line: dict[str, Any]) -> tuple[int, float]:
    """A round and its seconds; when and where a run was started or resumed is round 0."""
    return (count(line, "round"), figure(line, "seconds")) if "round" in line else (0, 0.0)


def entries(experiment: Experiment, records: Sequence[Recorded]) -> list[Entry]:
    """Those of the records that are an experiment's runs: their directories have the runs' names, and they themselves
    the methods' parameters and all accuracies."""
    named: dict[str, Recorded] = {record.path.name: record for record in records}
    found = []
    for job in experiment.jobs:
        for name, record in named.items():
            seed = re.fullmatch(r".*-s(\d+)-[0-9a-f]{8}", name)
            if seed and name.startswith(job.stem) and name == job.directory(int(seed[1])) and _fits(record, job):
                found.append(Entry(job, int(seed[1]), record))
    return found


def _fits(record: Recorded, job: Job) -> bool:
    """A directory can be given any name."""
    wanted = {key: value for key, value in job.document["algorithm"].items() if key != "name"}
    models = record.evaluated[0]["models"]
    measured = all("accuracy" in models.get(name, {}) for name in job.document["evaluation"]["models"])
    sent = record.history[0]["transmitted"] > 0
    return measured and sent and wanted.items() <= record.setting.get("algorithm", {}).items()
