"""What every method of a leaderboard came to, and whether one can be told from another by more than chance."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from feddyn.metrics import Better
from feddyn.records.layout import Status
from feddyn.records.reader import RunRecord
from feddyn.search.board import Board, Contest, finished, level
from feddyn.views.differences import words
from feddyn.views.tables import figure

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles of Student's t at 97.5%, by degrees of freedom from 1; beyond, the last one is on the safe side."""


@dataclass(frozen=True)
class Standing:
    """A method in a setting: what it was tuned to, the model that it is judged by, and its records by their seeds."""

    label: str
    words: str
    model: str
    records: Mapping[int, RunRecord]

    def value(self, seed: int, rounds: int | None = None) -> float:
        """What it came to with a seed, in all or in so many rounds."""
        return level(self.records[seed], self.model, rounds)

    @property
    def values(self) -> list[float]:
        """What it came to, seed by seed; those that diverged have none."""
        return [value for seed in self.records if math.isfinite(value := self.value(seed))]

    @property
    def diverged(self) -> int:
        """With how many seeds it came to nothing."""
        return len(self.records) - len(self.values)

    @property
    def bytes(self) -> float:
        """What all devices sent and got in a whole run, in the mean; 0 where no run was completed."""
        ended = [r.history[-1] for r in self.records.values() if r.status is not Status.DIVERGED]
        return mean([line["bytes_up"] + line["bytes_down"] for line in ended])


def standings(board: Board, contest: Contest) -> list[Standing]:
    """All methods of which a run has ended, the best first."""
    found = []
    for label in contest.methods:
        tuned = board.tuned(contest, label)
        if tuned is None:
            continue
        jobs = board.with_values(contest, label, tuned)
        records = {seed: finished(job.path) for seed, job in jobs.items()}
        ended = {seed: record for seed, record in records.items() if record is not None}
        if ended:
            tried = dict(searched(contest.methods[label].space))
            names = [key.partition(".")[2] for key in tuned]
            short = {key: key if names.count(name) > 1 else name for key, name in zip(tuned, names, strict=True)}
            said = [f"{short[key]} {words(key, v)}{_edge(v, tried.get(key, []))}" for key, v in tuned.items()]
            found.append(Standing(label, ", ".join(said) or "-", board.model, ended))
    up = better(found) == "higher"

    def place(one: Standing) -> tuple[int, float]:
        return one.diverged, -mean(one.values) if up else mean(one.values)

    return sorted(found, key=place)


def at_bytes(one: Standing, budget: float) -> list[float]:
    """What it had come to when so many bytes were sent, on the line between the evaluations before and after that: a
    few bytes more, of a number beside the model, are not worth a whole evaluation."""
    values = []
    for seed, record in one.records.items():
        points = [(line["bytes_up"] + line["bytes_down"], one.value(seed, line["round"])) for line in record.evaluated]
        within = [point for point in points if point[0] <= budget][-1:]
        beyond = [point for point in points if point[0] > budget][:1]
        if within and beyond:
            (low, before), (high, after) = within[0], beyond[0]
            values.append(before + (after - before) * (budget - low) / (high - low))
        else:
            values += [value for _, value in within]
    return [value for value in values if math.isfinite(value)]


def _differences(leader: Standing, other: Standing) -> list[float]:
    """How far another one is behind, seed by seed."""
    both = [seed for seed in leader.records if seed in other.records]
    pairs = [(leader.value(seed), other.value(seed)) for seed in both]
    sign = 1 if better([leader]) == "higher" else -1
    return [sign * (a - b) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]


def half_width(differences: Sequence[float]) -> float:
    """Half of Student's 95% interval of the mean of some differences.

    >>> round(half_width([1.0, 2.0, 3.0]), 3)
    2.484
    """
    count = len(differences)
    if count < 2:
        return math.inf
    return STUDENT[min(count - 1, len(STUDENT)) - 1] * statistics.stdev(differences) / math.sqrt(count)


def apart(leader: Standing, other: Standing) -> bool:
    """Whether a method that diverges less often, or is better in the mean by more than chance, leads."""
    if other.diverged > leader.diverged:
        return True
    differences = _differences(leader, other)
    return bool(differences) and mean(differences) > half_width(differences)


def interval(leader: Standing, other: Standing) -> str:
    """How far another method is behind, with half of the interval."""
    differences = _differences(leader, other)
    if not differences:
        return "it diverged"
    width = half_width(differences)
    return figure(mean(differences)) + ("" if math.isinf(width) else f" ± {figure(width)}")


def better(found: Sequence[Standing]) -> Better:
    """Whether higher or lower figures are better."""
    evaluated = (record for one in found for record in one.records.values() if record.evaluated)
    return next((record.better for record in evaluated), "higher")


def mean(values: Sequence[float]) -> float:
    """The mean; of nothing, zero."""
    return statistics.mean(values) if values else 0.0


def searched(space: Mapping[str, object]) -> list[tuple[str, list[Any]]]:
    """The keys of a space that have several values, with these."""
    return [(key, values) for key, values in space.items() if isinstance(values, list)]


def _edge(value: object, tried: Sequence[Any]) -> str:
    """A star where the best of several numbers is the last one to one side: beyond it might be a better one."""
    numbers = len(tried) > 2 and all(isinstance(one, int | float) for one in tried)
    return "*" if numbers and value in (min(tried), max(tried)) else ""
