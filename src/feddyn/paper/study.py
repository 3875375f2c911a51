"""Many runs in one directory: what is there of each, in which order the rest is run, and when to stop.

A run's setting has the paper's number of rounds and no target, so that it is the same run for every table that wants
it; it is paused where its targets are reached, its rounds are enough or the time is over, and goes on from there.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feddyn.errors import DivergenceError
from feddyn.paper.catalogue import Experiment, PaperRun
from feddyn.records.layout import Line, Status, ended
from feddyn.records.lines import read_rounds
from feddyn.runs.simulation import Start
from feddyn.settings.building import plans


def reached(history: Sequence[Mapping[str, Any]], target: float) -> Mapping[str, Any] | None:
    """The first round in which the mean of all devices has this accuracy."""
    return next(
        (line for line in history if line.get("models", {}).get("all", {}).get("accuracy", 0.0) >= target), None
    )


@dataclass
class Trial:
    """A job with a seed, and what is there of it."""

    job: PaperRun
    seed: int
    directory: Path
    rounds: int
    history: list[Line] = field(repr=False)
    diverged: bool

    @property
    def label(self) -> str:
        """What to call it."""
        return f"{self.job.row} {self.job.label}" + (f" seed {self.seed}" if self.seed else "")

    @property
    def complete(self) -> bool:
        """Whether nothing more is wanted of it."""
        return self.diverged or len(self.history) >= self.rounds or self._reached

    @property
    def _reached(self) -> bool:
        return bool(self.job.targets) and all(reached(self.history, target) for target in self.job.targets)

    @property
    def state(self) -> str:
        """How far the run is, in a word or two."""
        if self.diverged:
            return "diverged"
        done = len(self.history)
        if self._reached or done == self.job.document["rounds"]:
            return "complete"
        return f"at round {done} of {self.job.document['rounds']}" if done else "new"


def fresh(experiment: Experiment) -> list[Trial]:
    """The runs of an experiment with seed 0, as if nothing of them were there."""
    return [Trial(job, 0, Path(), job.document["rounds"], [], diverged=False) for job in experiment.jobs]


def trials(
    experiment: Experiment, directory: Path, seeds: int, rounds: int | None, wanted: Callable[[PaperRun], bool]
) -> list[Trial]:
    """The runs of an experiment with every seed, at most so many rounds each."""
    found = []
    for seed in range(seeds):
        for job in filter(wanted, experiment.jobs):
            where, limit = directory / job.directory(seed), job.document["rounds"]
            state = ended(where)
            diverged = state is not None and state["status"] == Status.DIVERGED
            history = read_rounds(where / "rounds.jsonl")
            found.append(Trial(job, seed, where, min(rounds or limit, limit), history, diverged))
    return found


def expected_rounds(trial: Trial, experiment: Experiment) -> int:
    """How many more rounds it may take: up to where the paper reached its last target, or all of them."""
    limit, factor = trial.rounds, 2 if trial.job.method == "scaffold" else 1
    counts = [
        getattr(row, trial.job.method, "+") for (name, _), row in experiment.printed.items() if name == trial.job.row
    ]
    if counts and not any(count.endswith("+") for count in counts):
        limit = min(limit, max(int(count) // factor for count in counts))
    return max(limit - len(trial.history), 0 if trial.complete else 1)


def units(found: Sequence[Trial], cost: Mapping[int, float]) -> list[list[Trial]]:
    """Rows with one seed each, in the order in which they are best run: seed by seed, the quickest row first.

    cost: seconds that a trial still needs, by its place in the list.
    """
    groups: dict[tuple[int, str], list[int]] = {}
    for place, trial in enumerate(found):
        groups.setdefault((trial.seed, trial.job.row), []).append(place)
    ordered = sorted(groups, key=lambda unit: (unit[0], sum(cost[place] for place in groups[unit])))
    return [[found[place] for place in groups[unit]] for unit in ordered]


class Budget:
    """Time that is left; none given: no end."""

    def __init__(self, seconds: float | None):
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        return float("inf") if self._end is None else self._end - time.monotonic()


def run(trial: Trial, budget: Budget, start: Start, shared: dict[str, Any]) -> Iterator[Line]:
    """Go on with a trial until it is complete or the time is over; it can always go on from there. `shared` keeps the
    population for other methods."""
    ((_, plan),) = plans(trial.job.setting(trial.seed), shared=shared)
    state, rounds = start(plan, trial.directory, trial.label)
    with closing(rounds):
        try:
            for line in rounds:
                trial.history = state.history
                yield line
                if line["round"] < plan.rounds and (trial.complete or budget.left <= 0):
                    break
        except DivergenceError:
            trial.diverged = True
