"""Many runs in one directory: what is there of each, in which order the rest is run, and when to stop.

A run's setting has the paper's number of rounds and no target, so that it is the same run for every table that wants
it; it is paused where its targets are reached, its rounds are enough or the time is over, and goes on from there.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from feddyn.engine.executors.pool import streams
from feddyn.errors import DivergenceError, FeddynError, InputError, nearest
from feddyn.paper.catalogue import Experiment, PaperRun
from feddyn.paper.cost import core_seconds
from feddyn.records.layout import Line, Status, ended
from feddyn.records.lines import read_rounds
from feddyn.runs.simulation import Start
from feddyn.settings.building import plans


class Choice(NamedTuple):
    """What of a table or figure is wanted: rows and methods by name (none: all), at most so many rounds of each run,
    seeds from 0 on, and of the targets only the `lower` one."""

    rows: Sequence[str] = ()
    methods: Sequence[str] = ()
    rounds: int | None = None
    seeds: int = 1
    lower: bool = False

    def row(self, name: str) -> bool:
        """Whether a row is wanted; rows may be patterns, as in 'mnist-*'."""
        return not self.rows or any(fnmatch(name, pattern) for pattern in self.rows)

    def jobs(self, experiment: Experiment) -> list[PaperRun]:
        """The runs that are wanted; there is one at least."""
        methods = list(dict.fromkeys(job.method for job in experiment.jobs))
        self.check(experiment.name, experiment.rows, methods)
        found = [job for job in experiment.jobs if self.row(job.row) and job.method in (self.methods or methods)]
        if not found:
            raise InputError(f"{experiment.name} has no run that is both in these rows and of these methods")
        return found

    def check(self, name: str, rows: Sequence[str], methods: Sequence[str] = ()) -> None:
        """Refuse rows and methods that a table or figure does not have."""
        for pattern in self.rows:
            if not any(fnmatch(row, pattern) for row in rows):
                raise InputError(f"{name} has no row {pattern!r}; {nearest(pattern, rows)}")
        for method in self.methods:
            if not methods:
                raise InputError(f"{name} is made as a whole: leave out --method")
            if method not in methods:
                raise InputError(f"{name} has no method {method!r}; {nearest(method, methods)}")


def reached(history: Sequence[Mapping[str, Any]], target: float) -> Mapping[str, Any] | None:
    """The first round in which the mean of all devices has this accuracy."""
    return next(
        (line for line in history if line.get("models", {}).get("all", {}).get("accuracy", 0.0) >= target), None
    )


@dataclass
class Trial:
    """A run of the paper with a seed, what is wanted of it, and what is there."""

    experiment: Experiment
    job: PaperRun
    seed: int
    directory: Path
    rounds: int
    targets: Sequence[float]
    history: list[Line] = field(default_factory=list, repr=False)
    diverged: bool = False
    problem: str = ""

    @property
    def label(self) -> str:
        """What to call the run."""
        return f"{self.job.row} {self.job.label}" + (f" seed {self.seed}" if self.seed else "")

    @property
    def source(self) -> str:
        """The data set that the run needs."""
        return str(self.job.document["population"]["source"])

    def look(self) -> None:
        """Read what is there of the run."""
        state = ended(self.directory)
        self.diverged = state is not None and state["status"] == Status.DIVERGED
        self.history = read_rounds(self.directory / "rounds.jsonl")

    @property
    def complete(self) -> bool:
        """Whether nothing more is wanted of the run."""
        return self.diverged or len(self.history) >= self.rounds or self._reached

    @property
    def _reached(self) -> bool:
        return bool(self.targets) and all(reached(self.history, target) for target in self.targets)

    @property
    def state(self) -> str:
        """How far the run is, in a word or two."""
        if self.diverged:
            return "diverged"
        done = len(self.history)
        if self._reached or done == self.job.document["rounds"]:
            return "complete"
        return f"at round {done} of {self.job.document['rounds']}" if done else "new"

    @property
    def rounds_left(self) -> int:
        """How many more rounds the run may take: up to where the paper reached its last target, or all of them."""
        limit, factor = self.rounds, 2 if self.job.method == "scaffold" else 1
        printed = {
            round(target / 100, 6): row
            for (name, target), row in self.experiment.printed.items()
            if name == self.job.row
        }
        counts = [getattr(row, self.job.method, "+") for target, row in printed.items() if target in self.targets]
        if counts and not any(count.endswith("+") for count in counts):
            limit = min(limit, max(int(count) // factor for count in counts))
        return 0 if self.complete else max(limit - len(self.history), 1)

    @property
    def core_seconds(self) -> float:
        """Roughly how many seconds the rounds that are left take one core."""
        return core_seconds(self.job.document, self.rounds_left)


def trials(experiment: Experiment, directory: Path | None, choice: Choice) -> list[Trial]:
    """The runs that are wanted of an experiment, with every seed; without a directory, nothing of them is there."""
    found = []
    for seed in range(choice.seeds):
        for job in choice.jobs(experiment):
            targets = sorted(job.targets)[:1] if choice.lower else job.targets
            limit = job.document["rounds"]
            where = (directory or Path()) / job.directory(seed)
            trial = Trial(experiment, job, seed, where, min(choice.rounds or limit, limit), targets)
            if directory:
                trial.look()
            found.append(trial)
    return found


def merged(found: Sequence[Trial]) -> list[Trial]:
    """Each run once, with all that is wanted of it."""
    runs: dict[Path, Trial] = {}
    for trial in found:
        if other := runs.get(trial.directory):
            targets = [*other.targets, *trial.targets] if other.targets and trial.targets else ()
            trial = replace(other, rounds=max(other.rounds, trial.rounds), targets=targets)
        runs[trial.directory] = trial
    return list(runs.values())


def cheapest_first(found: Sequence[Trial]) -> list[Trial]:
    """The runs in the best order: row by row with one seed each, those with the least computing first."""
    rows: dict[tuple[str, str, int], list[Trial]] = {}
    for trial in found:
        rows.setdefault((trial.experiment.name, trial.job.row, trial.seed), []).append(trial)
    ordered = sorted(rows.values(), key=lambda row: (sum(trial.core_seconds for trial in row), row[0].seed))
    return [trial for row in ordered for trial in row]


class Budget:
    """Time that is left; none given: no end."""

    def __init__(self, seconds: float | None):
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        return float("inf") if self._end is None else self._end - time.monotonic()


class Study:
    """Runs in a directory that are wanted for some experiments, each once; `absent` says why data cannot be had."""

    def __init__(self, wanted: Sequence[tuple[Experiment, Choice]], directory: Path):
        self.experiments = {experiment.name: experiment for experiment, _ in wanted}
        self.found = merged([trial for experiment, choice in wanted for trial in trials(experiment, directory, choice)])
        self.absent: dict[str, str] = {}

    @property
    def todo(self) -> list[Trial]:
        """The runs that can go on, in the order in which they are best run."""
        return cheapest_first([trial for trial in self.found if not trial.complete and trial.source not in self.absent])

    def fetch(self, fetch: Callable[[str], None]) -> None:
        """Get the data that is needed; an error only where nothing can be shown without it."""
        for source in dict.fromkeys(trial.source for trial in self.todo):
            try:
                fetch(source)
            except FeddynError as error:
                self.absent[source] = str(error)
        if self.absent and not self.todo and not any(trial.history for trial in self.found):
            raise FeddynError("; ".join(self.absent.values()))

    def train(self, budget: Budget, start: Start, side_by_side: int) -> Generator[tuple[Trial, Line], None, None]:
        """Each run with its rounds as they are completed, so many runs at a time. One that cannot go on has a `problem`
        in the end, and does not keep the others from running."""
        with closing(streams(partial(run, budget=budget, start=start), self.todo, side_by_side)) as lines:
            for trial, line in lines:
                if isinstance(line, str):
                    trial.problem = line
                else:
                    yield trial, line
        for trial in self.found:
            trial.look()


def run(trial: Trial, budget: Budget, start: Start) -> Generator[Line | str, None, None]:
    """Go on with a trial until it is complete or the time is over; it can always go on from there. Instead of a line,
    the last thing may be the reason why it cannot go on."""
    if budget.left <= 0:
        return
    try:
        ((_, plan),) = plans(trial.job.setting(trial.seed))
        state, rounds = start(plan, trial.directory, trial.label)
        with closing(rounds):
            for line in rounds:
                trial.history = state.history
                yield line
                if line["round"] < plan.rounds and (trial.complete or budget.left <= 0):
                    break
    except DivergenceError:
        pass  # its record says so
    except FeddynError as error:
        yield f"{trial.label}: {error}"
