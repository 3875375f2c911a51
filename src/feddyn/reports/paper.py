"""The paper's tables, ours beside theirs, from the records of the runs that are there."""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from feddyn.paper.catalogue import COLUMNS, Experiment
from feddyn.paper.centralised import REFERENCES
from feddyn.paper.trials import reached
from feddyn.records.layout import Status
from feddyn.reports.records import Entry
from feddyn.settings.names import METHODS
from feddyn.views.tables import Table, beyond, factor, savings, transmitted

TOLERANCE = 0.2
"""How far the paper's count may lie outside the range of ours before it is marked."""


class Count(NamedTuple):
    """Models transmitted until a target in the runs of a method, one for each seed; None: not within `limits`. Those
    that diverged before are counted apart. `whole`: nobody was stopped before its target and the paper's last round."""

    counts: Sequence[int | None]
    limits: Sequence[int]
    diverged: int = 0
    whole: bool = True

    @property
    def mean(self) -> float | None:
        """The mean count; None where a run did not get there."""
        found = [count for count in self.counts if count is not None]
        return statistics.mean(found) if found and len(found) == len(self.counts) and not self.diverged else None

    @property
    def least(self) -> float:
        """What the mean is at least: who has not reached the target yet needs more than was transmitted."""
        if self.diverged or not self.counts:
            return 0.0
        return statistics.mean(limit if n is None else n for n, limit in zip(self.counts, self.limits, strict=True))

    @property
    def range(self) -> tuple[float, float]:
        """The least and the most that a run needs; one that has not reached the target yet may need any number above
        what it transmitted, and one that diverged does not say."""
        if self.diverged or not self.counts:
            return 0.0, math.inf
        pairs = list(zip(self.counts, self.limits, strict=True))
        return min(limit if n is None else n for n, limit in pairs), max(math.inf if n is None else n for n, _ in pairs)

    def __str__(self) -> str:
        """One seed: its count; several that got there: mean ± standard deviation, and the range; then the others."""
        found = sorted(count for count in self.counts if count is not None)
        pairs = zip(self.counts, self.limits, strict=True)
        limits = sorted(limit for count, limit in pairs if count is None)
        words = []
        if len(found) == 1:
            words.append(str(found[0]))
        elif found:
            mean, spread = statistics.mean(found), statistics.stdev(found)
            words.append(f"{mean:.1f} ± {spread:.1f} ({found[0]} to {found[-1]})")
        if limits:
            ends = dict.fromkeys(transmitted(None, limit) for limit in (limits[0], limits[-1]))
            words.append((f"{len(limits)} at " if found else "") + " to ".join(ends))
        if self.diverged:
            words.append(f"{self.diverged} diverged" if words else "diverged")
        return ", ".join(words)


def table(experiment: Experiment, found: Sequence[Entry]) -> Table:
    """An experiment's table."""
    if experiment.name == "centralised":
        return _centralised(experiment, found)
    if experiment.printed:
        return _printed(experiment, found)
    if any(job.targets for job in experiment.jobs):
        return _rounds_and_gradients(experiment, found)
    return _accuracies(experiment, found)


def count(found: Sequence[Entry], row: str, method: str, target: float) -> Count | None:
    """What a method transmitted until it reached a target; None: it was not run. Runs that were meant for a lower
    target alone, and stopped there, say nothing of it, where others do."""
    runs = [entry for entry in found if entry.job.row == row and entry.job.method == method]
    if not runs:
        return None
    meant = [entry for entry in runs if not _stopped_before(entry, target)] or runs
    pairs = [(reached(entry.record.history, target), entry.record) for entry in meant]
    whole = all(
        line or len(entry.record.history) >= entry.job.document["rounds"]
        for (line, _), entry in zip(pairs, meant, strict=True)
    )
    kept = [(line, run) for line, run in pairs if line or run.status != "diverged"]
    counts = [line["transmitted"] if line else None for line, _ in kept]
    return Count(counts, [run.history[-1]["transmitted"] for _, run in kept], len(pairs) - len(kept), whole)


def _stopped_before(entry: Entry, target: float) -> bool:
    """Whether a run was stopped in the round in which it reached a lower target."""
    history, diverged = entry.record.history, entry.record.status == Status.DIVERGED
    return not diverged and any(reached(history, other) is history[-1] for other in entry.job.targets if other < target)


class Comparison(NamedTuple):
    """A row that the paper prints with at least one run of ours: the counts of every method, which of the paper's lie
    far outside the range of ours, and pairs of methods in order of ours, with whether the paper's is the same."""

    row: str
    target: float
    ours: dict[str, Count | None]
    theirs: dict[str, str]
    far: list[str]
    pairs: list[tuple[str, str, bool]]

    @property
    def other_order(self) -> list[str]:
        """The pairs of methods that have another order in the paper."""
        return [f"{first} before {second}" for first, second, agrees in self.pairs if not agrees]

    def measured(self, *methods: str) -> bool:
        """Whether all runs of these methods reached the target, and there are some."""
        return all((count := self.ours[method]) is not None and count.mean is not None for method in methods)

    def told(self, method: str) -> bool:
        """Whether all runs of a method reached the target or, as where the paper writes 1000+, needed more rounds than
        the paper has; and there are some."""
        return (count := self.ours[method]) is not None and count.whole and not count.diverged


def compared(experiment: Experiment, found: Sequence[Entry]) -> list[Comparison]:
    """The rows of the paper's table of which something was run."""
    rows = []
    for (row, target), printed in experiment.printed.items():
        ours = {method: count(found, row, method, round(target / 100, 6)) for method in COLUMNS}
        theirs = {method: getattr(printed, method) for method in COLUMNS}
        if any(ours.values()):
            far = [method for method in COLUMNS if _outside(ours[method], theirs[method])]
            rows.append(Comparison(row, target, ours, theirs, far, list(_compared(ours, theirs))))
    return rows


def _printed(experiment: Experiment, found: Sequence[Entry]) -> Table:
    rows, far, orders, other_order = list[list[str]](), list[str](), 0, list[str]()
    for one in compared(experiment, found):
        cells = []
        for method in COLUMNS:
            mark = "*" if method in one.far else ""
            cells += [cell(one.ours[method], one.ours["feddyn"], method) + mark, printed_cell(one.theirs, method)]
        where = f"{one.row} {one.target:g}%"
        far += [f"{where} {METHODS[m].label}: {one.ours[m]} (paper {one.theirs[m]})" for m in one.far]
        rows.append([one.row, f"{one.target:g}", *cells])
        orders += bool(one.pairs)
        other_order += [f"{where}: {', '.join(one.other_order)}"] if one.other_order else []
    labels = [word for method in COLUMNS for word in (METHODS[method].label, "paper")]
    others = f"; not in: {'; '.join(other_order)}." if other_order else "."
    notes = [
        "Models transmitted, relative to one round of FedAvg (SCAFFOLD sends two a round), until the mean of all "
        "devices' models has the accuracy; in parentheses how many times FedDyn's. A plus: not reached by then. "
        "A dash: not run. Seeds that were run to the lower target alone are left out at the higher one.",
        f"Of {orders} rows in which methods can be compared, their order agrees with the paper's in "
        f"{orders - len(other_order)}{others} (Two can be compared where all seeds of one need fewer than any of the "
        "other.)",
    ]
    if not orders:
        notes.pop()
    if far:
        notes.append(f"* The paper's count lies more than {TOLERANCE:.0%} outside the range of ours: {'; '.join(far)}.")
    return Table(experiment.title, ["row", "accuracy", *labels], rows, notes)


def cell(ours: Count | None, feddyn: Count | None, method: str) -> str:
    """Our count and, beside FedDyn's, how many times as much it is, as far as that can be told."""
    if ours is None:
        return "-"
    if method == "feddyn" or feddyn is None or feddyn.mean is None or ours.diverged:
        return str(ours)
    ratio = ours.least / feddyn.mean
    if ours.mean is None and ratio <= 1:  # it may have needed more than FedDyn, or less
        return str(ours)
    return f"{ours} ({factor(ratio) if ours.mean else beyond(ours.least, feddyn.mean)})"


def printed_cell(theirs: dict[str, str], method: str) -> str:
    """The paper's count and, beside its FedDyn's, how many times as much it is, as far as that can be told."""
    words, reference = theirs[method], theirs["feddyn"]
    if method == "feddyn":
        return words
    number = int(words.rstrip("+"))
    base = None if reference.endswith("+") else int(reference)
    times = savings(None if words.endswith("+") else number, number, base)
    return words if times == "-" else f"{words} ({times})"


def _outside(ours: Count | None, theirs: str) -> bool:
    """Whether the paper's count lies far outside the range of ours; a count of the paper's with a plus may be anything
    above it. Where all of ours diverged, any count does."""
    if ours is None:
        return False
    number, beyond = int(theirs.rstrip("+")), theirs.endswith("+")
    if not ours.counts:
        return not beyond
    bottom, top = ours._replace(diverged=0).range
    return number > (1 + TOLERANCE) * top or (not beyond and number < (1 - TOLERANCE) * bottom)


def _compared(ours: dict[str, Count | None], theirs: dict[str, str]) -> Iterator[tuple[str, str, bool]]:
    """Pairs of methods of which both ours and the paper's counts say which one is first; and whether they agree."""
    for place, one in enumerate(COLUMNS):
        for other in COLUMNS[place + 1 :]:
            mine = [value.range for method in (one, other) if (value := ours[method]) is not None]
            here = _order(*mine) if len(mine) == 2 else 0
            there = _order(_read(theirs[one]), _read(theirs[other]))
            if here * there:
                first, second = (one, other) if here < 0 else (other, one)
                yield METHODS[first].label, METHODS[second].label, here == there


def _read(words: str) -> tuple[float, float]:
    number = float(words.rstrip("+"))
    return number, math.inf if words.endswith("+") else number


def _order(one: tuple[float, float], other: tuple[float, float]) -> int:
    """-1: the first needs less, 1: the second does, 0: it is open."""
    return -1 if one[1] < other[0] else 1 if other[1] < one[0] else 0


def _rounds_and_gradients(experiment: Experiment, found: Sequence[Entry]) -> Table:
    rows = []
    for entry in found:
        for target in entry.job.targets:
            line = reached(entry.record.history, target)
            at, plus = line or entry.record.history[-1], "" if line else "+"
            figures = [f"{at[key]:,}{plus}" for key in ("round", "transmitted", "gradients")]
            rows.append([entry.job.row, entry.job.label, str(entry.seed), f"{target:.1%}", *figures])
    columns = ["row", "method", "seed", "accuracy", "rounds", "models transmitted", "gradients of samples"]
    return Table(experiment.title, columns, rows, ["A plus: not reached by then."])


def _accuracies(experiment: Experiment, found: Sequence[Entry]) -> Table:
    rows = []
    for entry in found:
        last = entry.record.evaluated[-1]
        planned = entry.job.document["rounds"]
        figures = [f"{len(entry.record.history)} of {planned}", f"{last['models']['all']['accuracy']:.2%}"]
        rows.append([entry.job.row, entry.job.label, str(entry.seed), *figures, f"{entry.record.best:.2%}"])
    return Table(experiment.title, ["row", "method", "seed", "rounds", "accuracy, last", "accuracy, best"], rows)


def _centralised(experiment: Experiment, found: Sequence[Entry]) -> Table:
    rows = []
    for entry in found:
        reference, record = REFERENCES[entry.job.row], entry.record
        passes = f"{len(record.history)} of {reference.epochs}"
        last = record.evaluated[-1]["models"]["server"]["accuracy"]
        figures = [f"{last:.2%}", f"{record.best:.2%}", f"{reference.accuracy}%"]
        rows.append([entry.job.row, reference.model["name"], str(entry.seed), passes, *figures])
    columns = ["data set", "model", "seed", "epochs", "ours, last", "ours, best", "the paper's"]
    return Table(experiment.title, columns, rows)
