"""What there is of the paper's experiments, what would run, and how far it is."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from feddyn.paper.appendix import origins
from feddyn.paper.catalogue import COLUMNS, Experiment, PaperRun
from feddyn.paper.cost import core_seconds
from feddyn.paper.searches import PaperSearch
from feddyn.paper.study import Study
from feddyn.paper.trials import Choice, Trial, Wish, merged, trials
from feddyn.records.lock import in_use
from feddyn.records.reader import RunRecord, find
from feddyn.reports import heterogeneity
from feddyn.reports.paper import TOLERANCE, Comparison, compared, table
from feddyn.reports.records import entries
from feddyn.views.tables import Table, duration

CORE = "a core of the machine of docs/results; yours may be twice as fast, or half"


def listing(experiments: Mapping[str, Experiment], searches: Mapping[str, PaperSearch]) -> Table:
    """All tables and figures of the paper."""
    rows = []
    for name, experiment in experiments.items():
        found = trials(experiment, None, Choice())
        time = duration(sum(trial.core_seconds for trial in found))
        rows.append([name, experiment.kind, experiment.title, str(len(experiment.rows)), str(len(found)), time])
    for name, search in searches.items():
        tried = search.candidates
        time = duration(sum(core_seconds(document, document["rounds"]) for document in tried))
        rows.append([name, search.kind, search.title, str(len(search.documents)), str(len(tried)), time])
    rows.append(["heterogeneity", "figure", heterogeneity.TITLE, str(len(heterogeneity.SPLITS)), "0", "-"])
    notes = [
        f"Computing: roughly, on {CORE}; as many rounds as the paper needed. Runs that two of them share are computed "
        "once.",
        "Every table comes with its convergence curves (feddyn report).",
    ]
    return Table("tables and figures of the paper", ["name", "kind", "what", "rows", "runs", "computing"], rows, notes)


def outlook(found: Sequence[Trial]) -> Table:
    """What would run."""
    rows = []
    for trial in found:
        computing = "-" if trial.complete else duration(trial.core_seconds)
        run = [trial.job.row, trial.job.label, str(trial.seed), trial.state]
        rows.append([*run, str(trial.rounds_left), computing])
    todo = [trial for trial in found if not trial.complete]
    total = duration(sum(trial.core_seconds for trial in todo))
    notes = [
        f"{len(todo)} runs to go: as many rounds as the paper needed, or all where it does not say; roughly {total} of "
        f"computing, on {CORE}."
    ]
    return Table("what would run", ["row", "method", "seed", "now", "rounds to go", "computing"], rows, notes)


def hyperparameters(jobs: Sequence[PaperRun]) -> Table:
    """Where the hyperparameters of some runs come from."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}  # methods, each once
    for job in jobs:
        for key, value, says, searched in origins(job.case, job.document["algorithm"]["name"]) if job.case else ():
            words = f"{says} (the paper searched {', '.join(map(str, searched))})" if searched else says
            part, _, name = key.rpartition(".")
            if value == (job.document[part] if part else job.document).get(name):
                found.setdefault((key, str(value), words), {})[job.label] = None
    rows = [[key, value, ", ".join(labels), words] for (key, value, words), labels in found.items()]
    return Table("hyperparameters", ["key", "value", "methods", "where it comes from"], rows)


def tables(study: Study, directory: Path) -> tuple[list[Table], list[str]]:
    """The tables of a study's experiments, as far as their rows were asked for and are there, and why records were left
    out."""
    rows = {(trial.experiment.name, trial.job.row) for trial in study.found}
    records, left_out = find([directory])
    made = []
    for name, experiment in study.experiments.items():
        mine = [entry for entry in entries(experiment, records) if (name, entry.job.row) in rows]
        made += [table(experiment, mine)] if mine else []
    return made, left_out


def status(
    directory: Path, experiments: Mapping[str, Experiment], queue: Sequence[tuple[Experiment, Choice]] | None
) -> tuple[list[Table], list[str]]:
    """How far the paper's runs in a directory are, what is left of a queue, how the paper's rows compare with them, and
    why records were left out."""
    records, left_out = find([directory])
    seeds = {int(found[1]) for path in directory.iterdir() if (found := re.search(r"-s(\d+)-", path.name))}
    begun = merged(
        [
            Trial(experiment, job, seed, there, [Wish(job.document["rounds"], job.targets)])
            for experiment in experiments.values()
            for job in experiment.jobs
            for seed in sorted(seeds)
            if (there := directory / job.directory(seed)).exists()
        ]
    )
    for trial in begun:
        trial.look()
    wanted = Study(queue, directory).found if queue else None
    printed = [experiment for experiment in experiments.values() if experiment.printed]
    return [_progress(begun, wanted), verdicts(printed, records)], left_out


def _progress(begun: Sequence[Trial], wanted: Sequence[Trial] | None) -> Table:
    """How far runs are that were begun, and what is left of those that are wanted (None: nobody said what is)."""
    rows = []
    busy = {trial.directory for trial in (*begun, *(wanted or ())) if not trial.complete and in_use(trial.directory)}
    for trial in (trial for trial in begun if trial.history or trial.problem):
        state = f"running, {trial.state}" if trial.directory in busy else trial.state
        figures = [line["models"] for line in trial.history if "models" in line]
        last = f"{list(figures[-1].values())[-1].get('accuracy', 0):.2%}" if figures else "-"
        rows.append([trial.experiment.name, trial.job.row, trial.job.label, str(trial.seed), state, last])
    found = begun if wanted is None else wanted
    open_ones = [trial for trial in found if not trial.complete]
    left = [trial for trial in open_ones if not trial.problem]
    running = sum(trial.directory in busy for trial in left)
    done = "that were begun got to the end" if wanted is None else "of the queue got as far as asked"
    stuck = f"{len(open_ones) - len(left)} cannot go on, " if len(left) < len(open_ones) else ""
    note = (
        f"{len(found) - len(open_ones)} of {len(found)} runs {done}, {stuck}{running} are running, "
        f"{len(left) - running} are left: with those that are running roughly "
        f"{duration(sum(t.core_seconds for t in left))} of computing, on {CORE}."
    )
    return Table("runs", ["name", "row", "method", "seed", "state", "accuracy, last"], rows, [note])


def verdicts(experiments: Iterable[Experiment], records: Sequence[RunRecord]) -> Table:
    """How many rows of the paper's tables were run, and agree with it."""
    rows, once = [], dict[tuple[str, float], list[int]]()
    for experiment in experiments:
        found = {(one.row, one.target): one for one in compared(experiment, entries(experiment, records))}
        runs = {job.row: job.directory(0) for job in experiment.jobs if job.method == COLUMNS[0]}
        counts = {(runs[row], target): _counted(found.get((row, target))) for row, target in experiment.printed}
        once |= counts
        rows.append([experiment.name, *map(str, _sums(counts.values()))])
    columns = [
        *("table", "rows", "FedDyn got there", "and FedAvg", f"FedDyn within {TOLERANCE:.0%}", "and all others"),
        *("methods can be compared", "in the paper's order"),
    ]
    notes = [
        "Got there: all seeds that were run to this target; of FedAvg's, those too that did not in all of the paper's "
        f"rounds, where it would write 1000+. Within {TOLERANCE:.0%}: the paper's count does not lie "
        "further outside the range of ours; and all others: nor does any other method's, as far as it was run.",
        f"Rows that stand in two of the tables are counted once in the last line, {len(once)} in all.",
    ]
    total = ["all, each once", *map(str, _sums(once.values()))]
    return Table("rows of the paper's tables", columns, [*rows, total], notes)


def _counted(one: Comparison | None) -> list[int]:
    """What a row adds to each column."""
    if one is None:
        return [1, 0, 0, 0, 0, 0, 0]
    run = one.measured("feddyn")
    ours = [run, run and one.told("fedavg"), run and "feddyn" not in one.far, run and not one.far]
    return [1, *map(int, ours), int(bool(one.pairs)), int(bool(one.pairs) and not one.other_order)]


def _sums(counts: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*counts, strict=True)]
