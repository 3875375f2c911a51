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
from feddyn.records.lock import InUseError
from feddyn.runs.simulation import Start
from feddyn.settings.building import plans

PATIENCE = 10.0
"""Seconds to wait for runs that other processes have, where there is nothing else to do: those of a command that was
killed still save them."""


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


class Wish(NamedTuple):
    """What is wanted of a run: all these targets, in at most so many rounds; without targets, so many rounds."""

    rounds: int
    targets: Sequence[float]

    def met(self, history: Sequence[Line]) -> bool:
        """Whether a run has gone so far."""
        there = bool(self.targets) and all(reached(history, target) for target in self.targets)
        return there or len(history) >= self.rounds


@dataclass
class Trial:
    """A run of the paper with a seed, all that is wanted of it, and what is there; a `problem` is why it cannot go
    on."""

    experiment: Experiment
    job: PaperRun
    seed: int
    directory: Path
    wishes: Sequence[Wish]
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

    @property
    def rounds(self) -> int:
        """How many rounds the run may have."""
        return max(wish.rounds for wish in self.wishes)

    def look(self) -> None:
        """Read what is there of the run."""
        try:
            state = ended(self.directory)
            self.diverged = state is not None and state["status"] == Status.DIVERGED
            self.history = read_rounds(self.directory / "rounds.jsonl")
        except InputError as error:
            self.problem = str(error)

    @property
    def complete(self) -> bool:
        """Whether nothing more is wanted of the run."""
        return self.diverged or all(wish.met(self.history) for wish in self.wishes)

    @property
    def state(self) -> str:
        """How far the run is, in a word or two."""
        if self.diverged or self.problem:
            return "diverged" if self.diverged else "cannot go on"
        done, planned = len(self.history), self.job.document["rounds"]
        if all(Wish(planned, wish.targets).met(self.history) for wish in self.wishes):
            return "complete"
        return f"at round {done} of {planned}" if done else "new"

    @property
    def rounds_left(self) -> int:
        """How many more rounds the run may take: up to where the paper reached the last of its targets, or all of them
        where it did not, or where this run has gone beyond."""
        left = [self._expected(wish) for wish in self.wishes if not wish.met(self.history)]
        return 0 if self.complete else max(left)

    def _expected(self, wish: Wish) -> int:
        done, factor = len(self.history), 2 if self.job.method == "scaffold" else 1
        printed = {
            round(target / 100, 6): row
            for (name, target), row in self.experiment.printed.items()
            if name == self.job.row
        }
        counts = [getattr(row, self.job.method, "+") for target, row in printed.items() if target in wish.targets]
        limit = wish.rounds
        if counts and not any(count.endswith("+") for count in counts):
            limit = min(limit, max(int(count) // factor for count in counts))
        return (limit if limit > done else wish.rounds) - done

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
            trial = Trial(experiment, job, seed, where, [Wish(min(choice.rounds or limit, limit), targets)])
            if directory:
                trial.look()
            found.append(trial)
    return found


def merged(found: Sequence[Trial]) -> list[Trial]:
    """Each run once, with all that is wanted of it."""
    runs: dict[Path, Trial] = {}
    for trial in found:
        other = runs.get(trial.directory)
        runs[trial.directory] = replace(other, wishes=[*other.wishes, *trial.wishes]) if other else trial
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
        able = [trial for trial in self.found if not trial.complete and not trial.problem]
        return cheapest_first([trial for trial in able if trial.source not in self.absent])

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
        in the end, and does not keep the others from running; one that another process has is tried again when they
        are done."""
        todo, last = self.todo, time.monotonic()
        while todo:
            work = streams(partial(run, budget=budget, start=start), todo, side_by_side, _killed)
            taken = list[Trial]()
            with closing(work) as lines:
                for trial, line in lines:
                    if isinstance(line, FeddynError):
                        trial.problem = f"{trial.label}: {line}"
                        taken += [trial] if isinstance(line, InUseError) else []
                    else:
                        last = time.monotonic()
                        yield trial, line
            if len(taken) == len(todo):
                if time.monotonic() - last > PATIENCE:
                    break
                time.sleep(1.0)
            todo = taken
            for trial in todo:
                trial.problem = ""
        for trial in self.found:
            trial.look()


def _killed(trial: Trial) -> FeddynError:
    return FeddynError("its process was killed from outside, perhaps for want of memory")


def run(trial: Trial, budget: Budget, start: Start) -> Generator[Line | FeddynError, None, None]:
    """Go on with a trial until it is complete or the time is over; it can always go on from there. Instead of a line,
    the last thing may be the reason why it cannot go on."""
    trial.look()  # another process may have gone on with it
    if trial.complete or budget.left <= 0:
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
        yield error
    except (MemoryError, OSError) as error:
        yield FeddynError(str(error) or "there is not enough memory")
