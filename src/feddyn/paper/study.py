"""Many runs in one directory, some at a time, and when to stop.

A run's setting has the paper's number of rounds and no target, so that it is the same run for every table that wants
it; it is paused where its targets are reached, its rounds are enough or the time is over, and goes on from there.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from feddyn.engine.pool import streams
from feddyn.errors import DivergenceError, FeddynError
from feddyn.paper.catalogue import Experiment
from feddyn.paper.trials import Choice, Trial, cheapest_first, merged, trials
from feddyn.records.layout import Line
from feddyn.records.lock import InUseError
from feddyn.runs.simulation import Start
from feddyn.settings.building import plans

PATIENCE = 10.0
"""Seconds to wait for runs that other processes have, where there is nothing else to do: those of a command that was
killed still save them."""


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

    def train(
        self, budget: Budget, start: Callable[[int], Start], processes: int
    ) -> Generator[tuple[Trial, Line], None, None]:
        """Each run with its rounds, as many runs at a time as there are processes; `start(n)` is how n side by side
        start. Where so few are left that each can have twice its share of the processes, they are saved and go on with
        that (lines that were on their way are only in their records). One that cannot go on has a `problem` in the end,
        and does not keep the others from running; one that another process has is tried again when they are done."""
        todo, last = self.todo, time.monotonic()
        while todo:
            count = min(processes, len(todo))
            work = streams(partial(run, budget=budget, start=start(count)), todo, count, _killed)
            left, taken = list(todo), list[Trial]()
            with closing(work) as lines:
                for trial, line in lines:
                    if isinstance(line, dict):
                        last = time.monotonic()
                        yield trial, line
                        continue
                    left.remove(trial)
                    if line:
                        trial.problem = f"{trial.label}: {line}"
                        taken += [trial] if isinstance(line, InUseError) else []
                    if left and processes // len(left) >= 2 * (processes // count):
                        break
            if len(taken) == len(todo):
                if time.monotonic() - last > PATIENCE:
                    break
                time.sleep(1.0)
            todo = left + taken
            for trial in taken:
                trial.problem = ""
        for trial in self.found:
            trial.look()


def _killed(trial: Trial) -> FeddynError:
    return FeddynError("its process was killed from outside, perhaps for want of memory")


def run(trial: Trial, budget: Budget, start: Start) -> Generator[Line | FeddynError | None, None, None]:
    """Go on with a trial until it is complete or the time is over; it can always go on from there. The last thing is
    not a line but the reason why it cannot go on, or None."""
    try:
        yield from _rounds(trial, budget, start)
        yield None
    except DivergenceError:
        yield None  # its record says so
    except FeddynError as error:
        yield error
    except (MemoryError, OSError) as error:
        yield FeddynError(str(error) or "there is not enough memory")


def _rounds(trial: Trial, budget: Budget, start: Start) -> Generator[Line, None, None]:
    trial.look()  # another process may have gone on with it
    if trial.complete or budget.left <= 0:
        return
    ((_, plan),) = plans(trial.job.setting(trial.seed))
    state, rounds = start(plan, trial.directory, trial.label)
    with closing(rounds):
        for line in rounds:
            trial.history = state.history
            yield line
            if line["round"] < plan.rounds and (trial.complete or budget.left <= 0):
                break
