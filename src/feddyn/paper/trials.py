"""The paper's runs that are wanted, with seeds: what is there of each, how far it should go, and which come first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from feddyn.errors import InputError, nearest
from feddyn.paper.catalogue import Experiment, PaperRun
from feddyn.paper.cost import core_seconds
from feddyn.records.layout import Line, Status, ended
from feddyn.records.lines import read_rounds


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
