"""Progress that people can see while something runs: live bars on a terminal, a line that renews itself in a notebook,
and elsewhere plain lines, at least one a minute as long as rounds are completed.

The time that is left is what the rest takes at the mean pace of what this process did itself; rounds that were there
before, in a run that goes on, do not count.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from feddyn.views.naming import named
from feddyn.views.tables import duration, visible
from feddyn.views.tables import figure as readable

MINUTE = 60.0


class Report(Protocol):
    """How far something has come; `figure` says how good it is, and `at_most` that it may end before its total."""

    def __call__(self, label: str, done: int, total: int, figure: str = "", at_most: bool = False) -> None: ...


class Pace:
    """How long the rest takes. What begins here begins where the last thing was heard of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock, self._heard = clock, clock()
        self._began: dict[str, tuple[float, int]] = {}

    def words(self, label: str, done: int, total: int, at_most: bool) -> str:
        """The time that is left or, at the end, that was spent."""
        now = self._clock()
        began, before = self._began.setdefault(label, (self._heard, done - 1))
        self._heard, spent = now, now - began
        if done >= total:
            return duration(spent)
        return f"{'at most ' if at_most else ''}{duration(spent / max(1, done - before) * (total - done))} left"


def figure(headline: tuple[str, str], line: Mapping[str, Any]) -> str:
    """The figure of a round that counts, and of which model it is; empty where the round was not evaluated."""
    model, metric = headline
    return f"{named(metric, model)} {readable(line['models'][model][metric])}" if "models" in line else ""


@contextmanager
def progress(unit: str, write: Callable[[str], None], *, stderr: bool = False) -> Iterator[Report]:
    """Shows what it is told on whatever there is; plain lines are written by `write`."""
    from rich.console import Console

    console = Console(stderr=stderr)
    if console.is_jupyter:
        from IPython.display import display

        yield _renewed(unit, display("", display_id=True).update)
    elif console.is_terminal:
        with _bars(console) as report:
            yield report
    else:
        yield plain(unit, write)


def watched(stderr: bool = False) -> bool:
    """Whether there is a terminal or a notebook, and so perhaps somebody who looks."""
    from rich.console import Console

    console = Console(stderr=stderr)
    return console.is_terminal or console.is_jupyter


def plain(unit: str, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Report:
    """A line for the first of something, for every tenth of it, for the last, and at least one a minute."""
    pace, told = Pace(clock), dict[str, tuple[int, float]]()

    def report(label: str, done: int, total: int, figure: str = "", at_most: bool = False) -> None:
        rest, now, tenth = pace.words(label, done, total, at_most), clock(), 10 * done // max(total, 1)
        last = told.get(label)
        if last is None or tenth != last[0] or done >= total or now - last[1] >= MINUTE:
            told[label] = tenth, now
            write(f"{label}: {_told(unit, done, total, figure, rest)}")

    return report


def _renewed(unit: str, update: Callable[[Any], None]) -> Report:
    """A line for each label, in one output that is renewed."""
    pace, lines, figures = Pace(), dict[str, str](), dict[str, str]()

    def report(label: str, done: int, total: int, figure: str = "", at_most: bool = False) -> None:
        figures[label] = figure or figures.get(label, "")
        rest = pace.words(label, done, total, at_most)
        lines[label] = f"{visible(label)}: {visible(_told(unit, done, total, figures[label], rest))}"
        update(_Text("\n".join(lines.values())))

    return report


class _Text:
    """A text that notebooks show without quotes."""

    def __init__(self, text: str):
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _told(unit: str, done: int, total: int, figure: str, rest: str) -> str:
    return ", ".join(filter(None, (f"{unit} {done} of {total}", figure, rest)))


@contextmanager
def _bars(console: Any) -> Iterator[Report]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Column

    columns = (
        TextColumn("{task.description:<12}", markup=False),
        BarColumn(),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[rest]}", markup=False),
        TextColumn("{task.fields[figure]}", markup=False),
    )
    pace = Pace()
    with Progress(*columns, console=console) as shown:
        tasks: dict[str, Any] = {}

        def report(label: str, done: int, total: int, figure: str = "", at_most: bool = False) -> None:
            if label not in tasks:
                tasks[label] = shown.add_task(visible(label), total=total, figure="", rest="")
            rest = pace.words(label, done, total, at_most)
            shown.update(tasks[label], completed=done, total=total, rest=rest)
            if figure:
                shown.update(tasks[label], figure=visible(figure))

        yield report
