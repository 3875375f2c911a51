"""Records of runs as reports read them: whatever is there, of runs that ended, go on or were interrupted."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feddyn.errors import InputError
from feddyn.experiments.catalogue import Experiment, Job
from feddyn.experiments.study import lines, reached, whole_lines


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

    def best(self, metric: str = "accuracy") -> float:
        """The best figure of any round, of the model that counts."""
        model = "all" if "all" in self.evaluated[-1]["models"] else next(iter(self.evaluated[-1]["models"]))
        values: list[float] = [line["models"][model][metric] for line in self.evaluated]
        return max(values) if metric == "accuracy" else min(values)


@dataclass(frozen=True)
class Entry:
    """A run of an experiment of the paper."""

    job: Job
    seed: int
    record: Recorded

    @property
    def status(self) -> str:
        """Of a run that stops when it has reached what is wanted of it, and can go on."""
        if self.record.status in ("interrupted", "running"):
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


def find(directories: Sequence[Path]) -> list[Recorded]:
    """All records in or below some directories, in order; runs without a completed round are left out."""
    found = []
    for directory in directories:
        if not directory.is_dir():
            raise InputError(f"there is no directory {directory}: give directories with records of runs")
        paths = sorted(path.parent for path in directory.rglob("setting.toml"))
        found += [record for record in map(read, paths) if record.history]
    if not found:
        raise InputError(f"there is no record of a run in {', '.join(map(str, directories))}")
    return list({record.path.resolve(): record for record in found}.values())


def read(path: Path) -> Recorded:
    """One record."""
    try:
        text = (path / "setting.toml").read_text(encoding="utf-8")
        setting, history = tomllib.loads(text), lines(path)
        timings = [json.loads(line) for line in whole_lines(path / "timings.jsonl")]
        summary = json.loads((path / "summary.json").read_bytes()) if (path / "summary.json").exists() else {}
    except (OSError, ValueError) as error:
        raise InputError(f"the record in {path} is damaged: {error}") from None
    # rounds that were done again after a crash count once
    spent = {line["round"]: line["seconds"] for line in timings if "round" in line}
    status = summary.get("status", "running")
    return Recorded(path, text, setting, history, status, summary.get("message", ""), sum(spent.values()))


def entries(experiment: Experiment, records: Sequence[Recorded]) -> list[Entry]:
    """Those of the records that are an experiment's runs: their directories have the runs' names."""
    named: dict[str, Recorded] = {record.path.name: record for record in records}
    found = []
    for job in experiment.jobs:
        for name, record in named.items():
            seed = re.fullmatch(r".*-s(\d+)-[0-9a-f]{8}", name)
            if seed and name.startswith(job.stem) and name == job.directory(int(seed[1])):
                found.append(Entry(job, int(seed[1]), record))
    return found
