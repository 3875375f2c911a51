"""Runs beside each other: those that differ by their seed alone are one line with a band, and every other difference is
a column."""

import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from feddyn.errors import InputError, nearest
from feddyn.metrics import Better, best, directions, reaches
from feddyn.records.files import home
from feddyn.records.reader import RunRecord, find
from feddyn.records.recorded import Recorded
from feddyn.views.curves import AXES, overlay
from feddyn.views.differences import FEW, digits, flat, short, words
from feddyn.views.html import rendered
from feddyn.views.naming import named
from feddyn.views.tables import Table, duration, figure, sparkline, volume
from feddyn.views.variants import Variant, variants

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Line: TypeAlias = Mapping[str, Any]
WIDE = 6
"""Settings that have columns of their own on a terminal."""


@dataclass(frozen=True)
class Band:
    """The figures of a variant: at every x the mean of those of its runs that got so far, the least and the most."""

    x: list[int]
    mean: list[float]
    least: list[float]
    most: list[float]


@dataclass(frozen=True)
class Comparison:
    """Runs beside each other by one figure. Print it, `plot()` it, or let a notebook show it; `keys` are the settings
    in which they differ, `target` is the figure whose price is counted, if there is one."""

    variants: Sequence[Variant]
    keys: Sequence[str]
    model: str
    metric: str
    better: Better
    target: float | None = None

    def values(self, run: Recorded) -> list[tuple[Line, float]]:
        """The evaluated rounds of a run with the figure that is compared."""
        return [(line, line["models"][self.model][self.metric]) for line in run.evaluated]

    def band(self, variant: Variant, over: str = "round") -> Band:
        """The curve of a variant over rounds, models transmitted, bytes or gradients."""
        if over not in AXES:
            raise InputError(f"over {over!r} is not known; {nearest(over, AXES)}")
        at, found = AXES[over][1], dict[int, list[float]]()
        for row in zip_longest(*(self.values(run) for run in variant.runs)):
            reached = [one for one in row if one is not None]
            x = round(statistics.mean(at(line) for line, _ in reached))
            found.setdefault(x, []).extend(value for _, value in reached)
        rows = list(found.values())
        return Band(list(found), [statistics.mean(row) for row in rows], list(map(min, rows)), list(map(max, rows)))

    @property
    def table(self) -> Table:
        """A row a variant: what differs, the figure at the end and at its best, what it took, and the curve."""
        return self._table(self.keys)

    @property
    def brief(self) -> Table:
        """The same for a terminal: where much differs, all of it stands in one column."""
        return self._table(self.keys if len(self.keys) <= WIDE else ())

    @property
    def bare(self) -> Table:
        """The same for a narrow one: without the curve, times and seeds."""
        brief = self.brief
        kept = [n for n, column in enumerate(brief.columns) if column not in ("seeds", "ran", "best", "time", "curve")]
        rows = [[row[n] for n in kept] for row in brief.rows]
        return replace(brief, columns=[brief.columns[n] for n in kept], rows=rows)

    def _table(self, keys: Sequence[str]) -> Table:
        names, title = short(keys), named(self.metric, self.model)
        columns = [names[key] for key in keys] or ["run" if self.keys else "method"]
        columns += ["seeds", *self._status, "ran", f"{self.metric} at the end", "best"]
        if self.target is not None:
            sign = ">=" if self.better == "higher" else "<="
            title += f", and the price of {self.metric} {sign} {self.target:.4g}"
            columns += ["models to target", "sent to target"]
        else:
            columns += ["sent"]
        columns += ["time", "curve"]
        counts = digits([flat(variant.runs[0].setting) for variant in self.variants])
        rows = [self._row(variant, keys, counts) for variant in self.variants]
        several = any(len(variant.runs) > 1 for variant in self.variants)
        notes = ["Of several seeds: the mean (the least to the most)."] if several else []
        return Table(title, columns, rows, notes)

    @property
    def _status(self) -> list[str]:
        """A column for how far runs are, where some are not complete."""
        complete = all(run.status.complete for variant in self.variants for run in variant.runs)
        return [] if complete else ["status"]

    def _row(self, variant: Variant, keys: Sequence[str], counts: Mapping[str, int]) -> list[str]:
        own = flat(variant.runs[0].setting)
        cells = [words(key, own.get(key), counts.get(key, FEW)) for key in keys] or [variant.label]
        histories = [self.values(run) for run in variant.runs]
        figures = [[value for _, value in history] for history in histories]
        cells += [", ".join(map(str, variant.seeds))]
        cells += [", ".join(dict.fromkeys(run.status for run in variant.runs))] if self._status else []
        cells += [_range([len(run.history) for run in variant.runs], str)]
        cells += [_several([row[-1] for row in figures], figure)]
        cells += [_several([best(row, self.better) for row in figures], figure)]
        if self.target is not None:
            cells += list(self._price(histories, self.target))
        else:
            cells += [_range([AXES["bytes"][1](run.history[-1]) for run in variant.runs], volume)]
        seconds = [run.seconds for run in variant.runs if run.seconds]
        time = duration(statistics.mean(seconds)) if seconds else "-"
        return [*cells, time, sparkline(self.band(variant).mean)]

    def _price(self, histories: Sequence[Sequence[tuple[Line, float]]], target: float) -> tuple[str, str]:
        """What was transmitted until the target was reached; of runs that did not reach it, that it is more."""
        hits, others = list[Line](), list[Line]()
        for history in histories:
            hit = next((line for line, value in history if reaches(value, target, self.better)), None)
            (others if hit is None else hits).append(hit or history[-1][0])

        def words(of: Callable[[Line], float], say: Callable[[float], str]) -> str:
            there = [_range([of(line) for line in hits], say)] if hits else []
            more = _range([of(line) for line in others], lambda value: f"{say(value)}+")
            return ", ".join(there + ([f"{len(others)} at {more}" if hits else more] if others else []))

        return words(AXES["transmitted"][1], str), words(AXES["bytes"][1], lambda value: volume(int(value)))

    def plot(self, over: str = "round") -> "Figure":
        """The curves, over `round`, `transmitted`, `bytes` or `gradients`: of several seeds the mean in their range.
        Needs matplotlib."""
        return overlay(self, over)

    def frame(self) -> "pandas.DataFrame":
        """All rounds of all runs as a pandas.DataFrame, with their label, seed and differing settings; needs pandas."""
        frames = []
        for variant in self.variants:
            for run in variant.runs:
                own, names = flat(run.setting), short(self.keys)
                said = {names[key]: own.get(key) for key in self.keys}
                frames.append(run.frame().assign(run=variant.label, seed=run.setting.get("seed", 0), **said))
        from pandas import concat

        return concat(frames, ignore_index=True)

    def __str__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return rendered([self.table], self.plot)


def compare(
    *runs: "Recorded | str | PathLike[str]",
    metric: str | None = None,
    model: str | None = None,
    target: float | None = None,
) -> Comparison:
    """Runs, or directories with their records, beside each other.

    By default the figure is the one that counts for the first run, and the target is that of the settings, if all have
    the same. Runs whose settings differ by the seed alone are drawn as one curve with a band.
    """
    found = [one for run in runs for one in ([run] if isinstance(run, Recorded) else _records(home(Path(run))))]
    found = list({_identity(run): run for run in found}.values())
    if not found:
        raise InputError("there is nothing to compare: give runs, or the directories of their records")
    for run in found:
        if not run.evaluated:
            where = getattr(run, "path", None) or "one of the runs"
            raise InputError(f"{where}: {run.message or 'no round of it has been evaluated yet'}")
    chosen, measure = found[0].headline
    chosen, measure = model or chosen, metric or measure
    rows = [run.evaluated[-1]["models"] for run in found]
    if any(chosen not in row for row in rows):
        raise InputError(f"not all runs have the model {chosen!r}; {_in_common(chosen, rows)}")
    if any(measure not in row[chosen] for row in rows):
        words = _in_common(measure, [row[chosen] for row in rows])
        raise InputError(f"not all runs have the {named(measure, chosen)}; {words}")
    keys, together = variants(found)
    goals = [{**run.setting.get("target", {}), "stop": None} for run in found]  # whether it stops there costs nothing
    if target is None and all(goal == goals[0] for goal in goals) and goals[0].get("metric") == measure:
        target = goals[0]["value"] if goals[0]["model"] == chosen else None
    return Comparison(together, keys, chosen, measure, directions(found[0].setting)[measure], target)


def _records(directory: Path) -> list[RunRecord]:
    """The records in or below a directory; those that cannot be compared are told of."""
    found, left_out = find([directory])
    if not found:
        raise InputError(left_out[0] if left_out else f"there is no record of a run in or below {directory}")
    for why in left_out:
        warnings.warn(f"left out: {why}", stacklevel=3)
    return found


def _identity(run: Recorded) -> object:
    """What tells whether two runs are the same one, given twice."""
    where: Path | None = getattr(run, "path", None)
    return where.resolve() if where else id(run)


def _in_common(wanted: str, rows: Sequence[Mapping[str, Any]]) -> str:
    known = set.intersection(*(set(row) for row in rows))
    return nearest(wanted, known) if known else "they have none in common"


def _several(values: Sequence[float], say: Callable[[float], str]) -> str:
    if len(values) == 1:
        return say(values[0])
    return f"{say(statistics.mean(values))} ({say(min(values))} to {say(max(values))})"


def _range(values: Sequence[Any], say: Callable[[Any], str]) -> str:
    return _ends([(value, say(value)) for value in values])


def _ends(values: Sequence[tuple[float, str]]) -> str:
    """The words of the least and of the most."""
    if not values:
        return "-"
    least, most = min(values)[1], max(values)[1]
    return least if least == most else f"{least} to {most}"
