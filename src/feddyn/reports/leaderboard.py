"""The page of a leaderboard, made of the records that are there: what every method came to, and who wins where."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from feddyn.metrics import Better, reaches, worst_tenth
from feddyn.records.layout import Status
from feddyn.records.reader import RunRecord
from feddyn.reports.provenance import provenance
from feddyn.search.board import TAIL, Board, Contest, finished, level
from feddyn.search.space import grid
from feddyn.views.differences import words
from feddyn.views.tables import Table, duration, figure, volume

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles of Student's t at 97.5%, by degrees of freedom from 1; beyond, the last one is on the safe side."""

WORDS = """# Leaderboard

Every method tries its candidates in every setting, with a seed that is used for nothing else. The best one then runs
with the seeds {seeds}. Each seed has its own data split, schedule, initial model and batches, the same for all methods,
and all of them do the same local work, the setting's. All are tuned and judged by {model}.

Figures are means over the seeds, with the standard deviation after ±. A run's figure is the mean over its last {tail}
evaluations. *At so many bytes* is what was reached when all devices together had sent and got as much as the most
frugal method did in all its rounds, on the line between two evaluations. The worst tenth is of the server's model on
the devices' own samples. There is no validation set: candidates are chosen by the same test samples, with other devices
and another start.
"""

JUDGED = {
    "all": "the mean of all devices' latest models, as the paper's tables are",
    "active": "the mean of the active devices' models",
    "server": "the server's model",
}


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
        return _mean([line["bytes_up"] + line["bytes_down"] for line in ended])


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
            tried = dict(_lists(contest.methods[label].space))
            names = [key.partition(".")[2] for key in tuned]
            short = {key: key if names.count(name) > 1 else name for key, name in zip(tuned, names, strict=True)}
            said = [f"{short[key]} {words(key, v)}{_edge(v, tried.get(key, []))}" for key, v in tuned.items()]
            found.append(Standing(label, ", ".join(said) or "-", board.model, ended))
    up = _better(found) == "higher"

    def place(one: Standing) -> tuple[int, float]:
        return one.diverged, -_mean(one.values) if up else _mean(one.values)

    return sorted(found, key=place)


def table(contest: Contest, found: Sequence[Standing]) -> Table:
    """A row a method."""
    metric = _metric(found)
    budget = min((one.bytes for one in found if one.bytes), default=0.0)
    columns = ["method", "tuned", f"{metric} at the end", "of the server's model", f"{metric} at {volume(int(budget))}"]
    columns += [f"rounds to {contest.target:g}"] if contest.target is not None else []
    columns += [f"{metric}, worst tenth of devices", "gradients", "seconds", "seeds"]
    least = min((_gradients(one) for one in found), default=1.0)
    rows = []
    for one in found:
        row = [one.label, one.words, _spread(one.values), _spread(_of_server(one)), _spread(at_bytes(one, budget))]
        row += [_reached(one, contest.target)] if contest.target is not None else []
        row += [_spread(_worst(one, metric)), f"{_gradients(one) / least:.2f}x"]
        row += [duration(statistics.mean(record.seconds for record in one.records.values()))]
        rows.append([*row, f"{len(one.records)}" + (f" ({one.diverged} diverged)" if one.diverged else "")])
    missing = [label for label in contest.methods if label not in {one.label for one in found}]
    notes = [f"Not run yet: {', '.join(missing)}."] if missing else []
    if any("*" in one.words for one in found):
        notes.append("\\* The smallest or the largest value that was tried.")
    return Table(contest.name, columns, rows, notes)


def ranks(board: Board, results: Sequence[Sequence[Standing]]) -> Table:
    """The place of every method in every setting that all of them have run in, and the mean of its places."""
    labels = list(board.contests[0].methods)
    whole = [found for found in results if len(found) == len(labels)]
    places = {label: [[one.label for one in found].index(label) + 1 for found in whole] for label in labels}
    names = [contest.name for contest, found in zip(board.contests, results, strict=True) if len(found) == len(labels)]
    ordered = sorted(labels, key=lambda label: statistics.mean(places[label] or [0]))
    rows = [[label, *map(str, places[label]), f"{statistics.mean(places[label] or [0]):.1f}"] for label in ordered]
    note = "Places by the means over the seeds, whatever the spread: neighbours often cannot be told from each other."
    return Table("places", ["method", *names, "mean"], rows, [note])


def summary(board: Board, results: Sequence[Sequence[Standing]]) -> Table:
    """Who wins where: the leader of each setting, who cannot be told from it, and how far FedDyn is behind."""
    rows = []
    for contest, found in zip(board.contests, results, strict=True):
        if not found or not found[0].values:
            rows.append([contest.name, "not run", "-", "-", "-"])
            continue
        leader, *others = found
        level_with = [one.label for one in others if one.values and not _apart(leader, one)]
        first = next((one for one in found if one.label == board.first), None)
        behind = "-" if first is None else "leads" if first is leader else _interval(leader, first)
        seeds = str(min(len(one.records) for one in found))
        rows.append([contest.name, leader.label, ", ".join(level_with) or "nobody", behind, seeds])
    columns = ["setting", "leader", "cannot be told from it", f"{board.first} is behind it by", "seeds"]
    note = (
        "Differences are paired by seed; after them stands the half-width of Student's 95% interval. Methods whose "
        "interval has 0 in it cannot be told from the leader. Nothing is corrected for the number of comparisons, and "
        "the leader was chosen by the same runs, which flatters it."
    )
    return Table("who wins where", columns, rows, [note])


def space(board: Board) -> Table:
    """What was searched for every method, the same in every setting."""
    rows = []
    for label, method in board.contests[0].methods.items():
        lists = [f"{key} in {words(key, values)}" for key, values in _lists(method.space)]
        rows.append([label, "; ".join(lists) or "nothing", str(len(grid(method)))])
    title = f"the search space: at most {board.trials} candidates of each method, all with the seed {board.tuning_seed}"
    return Table(title, ["method", "values", "candidates"], rows)


def page(board: Board, results: Sequence[Sequence[Standing]]) -> str:
    """All of it in Markdown; `results` are the standings of every setting."""
    words = WORDS.format(seeds=", ".join(map(str, board.seeds)), model=JUDGED[board.model], tail=TAIL)
    run = [table(contest, found) for contest, found in zip(board.contests, results, strict=True) if found]
    records = [record for found in results for one in found for record in one.records.values()]
    tables = [
        summary(board, results),
        ranks(board, results),
        *run,
        space(board),
        *([provenance(records)] if records else []),
    ]
    return "\n".join([words, *(each.markdown() for each in tables)])


def _lists(space: Mapping[str, object]) -> list[tuple[str, list[Any]]]:
    return [(key, values) for key, values in space.items() if isinstance(values, list)]


def _edge(value: object, tried: Sequence[Any]) -> str:
    """A star where the best of several numbers is the last one to one side: beyond it might be a better one."""
    numbers = len(tried) > 2 and all(isinstance(one, int | float) for one in tried)
    return "*" if numbers and value in (min(tried), max(tried)) else ""


def _better(found: Sequence[Standing]) -> Better:
    evaluated = (record for one in found for record in one.records.values() if record.evaluated)
    return next((record.better for record in evaluated), "higher")


def _metric(found: Sequence[Standing]) -> str:
    evaluated = (record for one in found for record in one.records.values() if record.evaluated)
    return next((record.headline[1] for record in evaluated), "figure")


def _mean(values: Sequence[float]) -> float:
    return statistics.mean(values) if values else 0.0


def _gradients(one: Standing) -> float:
    """Gradients of single samples, a round."""
    return _mean([r.history[-1]["gradients"] / len(r.history) for r in one.records.values() if r.history]) or 1.0


def _of_server(one: Standing) -> list[float]:
    """What the server's model came to, seed by seed."""
    return [value for record in one.records.values() if math.isfinite(value := level(record, "server"))]


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


def _reached(one: Standing, target: float) -> str:
    """The rounds until the target, of the seeds that reached it."""
    rounds = []
    for record in one.records.values():
        metric, lines = record.headline[1] if record.evaluated else "", record.evaluated
        hits = (line["round"] for line in lines if reaches(line["models"][one.model][metric], target, record.better))
        rounds += [hit] if (hit := next(hits, None)) else []
    few = "" if len(rounds) == len(one.records) else f" ({len(rounds)} of {len(one.records)} seeds)"
    return f"{statistics.mean(rounds):.0f}{few}" if rounds else "-"


def _worst(one: Standing, metric: str) -> list[float]:
    values = [record.on_devices[metric] for record in one.records.values() if metric in record.on_devices]
    return [worst_tenth(each, _better([one])) for each in values]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return figure(statistics.mean(values)) + (f" ± {figure(statistics.stdev(values))}" if len(values) > 1 else "")


def _differences(leader: Standing, other: Standing) -> list[float]:
    """How far another one is behind, seed by seed."""
    both = [seed for seed in leader.records if seed in other.records]
    pairs = [(leader.value(seed), other.value(seed)) for seed in both]
    sign = 1 if _better([leader]) == "higher" else -1
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


def _apart(leader: Standing, other: Standing) -> bool:
    """Whether a method that diverges less often, or is better in the mean by more than chance, leads."""
    if other.diverged > leader.diverged:
        return True
    differences = _differences(leader, other)
    return bool(differences) and _mean(differences) > half_width(differences)


def _interval(leader: Standing, other: Standing) -> str:
    differences = _differences(leader, other)
    if not differences:
        return "it diverged"
    width = half_width(differences)
    return figure(_mean(differences)) + ("" if math.isinf(width) else f" ± {figure(width)}")
