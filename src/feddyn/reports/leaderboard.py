"""The page of a leaderboard, made of the standings of its methods."""

import math
import statistics
from collections.abc import Sequence

from feddyn.metrics import reaches, worst_tenth
from feddyn.reports.provenance import provenance
from feddyn.reports.standings import Standing, apart, at_bytes, better, interval, mean, searched
from feddyn.search.board import TAIL, Board, Contest, level
from feddyn.search.space import grid
from feddyn.views.differences import words
from feddyn.views.tables import Table, duration, figure, volume

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
        level_with = [one.label for one in others if one.values and not apart(leader, one)]
        first = next((one for one in found if one.label == board.first), None)
        behind = "-" if first is None else "leads" if first is leader else interval(leader, first)
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
        lists = [f"{key} in {words(key, values)}" for key, values in searched(method.space)]
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


def _metric(found: Sequence[Standing]) -> str:
    evaluated = (record for one in found for record in one.records.values() if record.evaluated)
    return next((record.headline[1] for record in evaluated), "figure")


def _gradients(one: Standing) -> float:
    """Gradients of single samples, a round."""
    return mean([r.history[-1]["gradients"] / len(r.history) for r in one.records.values() if r.history]) or 1.0


def _of_server(one: Standing) -> list[float]:
    """What the server's model came to, seed by seed, where it was evaluated."""
    found = [record for record in one.records.values() if all("server" in line["models"] for line in record.evaluated)]
    return [value for record in found if math.isfinite(value := level(record, "server"))]


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
    return [worst_tenth(each, better([one])) for each in values]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return figure(statistics.mean(values)) + (f" ± {figure(statistics.stdev(values))}" if len(values) > 1 else "")
