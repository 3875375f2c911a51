"""What there is of the paper's experiments, what would run, and how far it is."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from feddyn.paper.appendix import origins
from feddyn.paper.catalogue import Experiment, PaperRun
from feddyn.paper.cost import core_seconds
from feddyn.paper.searches import PaperSearch
from feddyn.paper.study import Choice, Study, Trial, trials
from feddyn.records.lock import in_use
from feddyn.records.reader import RunRecord, find
from feddyn.reports import heterogeneity
from feddyn.reports.paper import TOLERANCE, compared, table
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
    found: dict[tuple[str, str, str], list[str]] = {}
    for job in jobs:
        for key, value, says, searched in origins(job.case, job.document["algorithm"]["name"]) if job.case else ():
            words = f"{says} (the paper searched {', '.join(map(str, searched))})" if searched else says
            part, _, name = key.rpartition(".")
            if value == (job.document[part] if part else job.document).get(name):
                found.setdefault((key, str(value), words), []).append(job.label)
    rows = [[key, value, ", ".join(labels), words] for (key, value, words), labels in found.items()]
    return Table("hyperparameters", ["key", "value", "methods", "where it comes from"], rows)


def tables(study: Study, directory: Path) -> list[Table]:
    """The tables of a study's experiments, as far as their rows were asked for and are there."""
    rows = {(trial.experiment.name, trial.job.row) for trial in study.found}
    records, _ = find([directory])
    made = []
    for name, experiment in study.experiments.items():
        mine = [entry for entry in entries(experiment, records) if (name, entry.job.row) in rows]
        made += [table(experiment, mine)] if mine else []
    return made


def status(
    directory: Path, experiments: Mapping[str, Experiment], wanted: Sequence[tuple[Experiment, Choice]] | None
) -> list[Table]:
    """How far the runs in a directory are that are wanted (None: those that were begun), and how the paper's rows
    compare with them."""
    records, _ = find([directory])
    seeds = 1 + max((record.setting.get("seed", 0) for record in records), default=0)
    every = Study(wanted or [(experiment, Choice(seeds=seeds)) for experiment in experiments.values()], directory)
    found = every.found if wanted else [trial for trial in every.found if trial.history]
    return [_progress(found), verdicts([e for e in experiments.values() if e.printed], records)]


def _progress(found: Sequence[Trial]) -> Table:
    """How far runs are: those that were begun, and how many are left."""
    rows, running, done = [], 0, 0
    for trial in found:
        busy = not trial.complete and in_use(trial.directory)
        running += busy
        done += trial.complete
        if trial.history:
            state = f"running, {trial.state}" if busy else trial.state
            figures = [line["models"] for line in trial.history if "models" in line]
            last = f"{list(figures[-1].values())[-1].get('accuracy', 0):.2%}" if figures else "-"
            rows.append([trial.experiment.name, trial.job.row, trial.job.label, str(trial.seed), state, last])
    left = [trial for trial in found if not trial.complete]
    notes = [
        f"{done} of {len(found)} runs got as far as asked, {running} are running, {len(left) - running} are left: with "
        f"those that are running roughly {duration(sum(t.core_seconds for t in left))} of computing, on {CORE}."
    ]
    return Table("runs", ["name", "row", "method", "seed", "state", "accuracy, last"], rows, notes)


def verdicts(experiments: Iterable[Experiment], records: Sequence[RunRecord]) -> Table:
    """How many rows of the paper's tables were run, and agree with it."""
    rows, totals = [], [0] * 6
    for experiment in experiments:
        found = compared(experiment, entries(experiment, records))
        run = [one for one in found if one.measured("feddyn")]
        ordered = [one for one in found if one.pairs]
        counts = [
            *(len(experiment.printed), len(run), sum(one.measured("feddyn", "fedavg") for one in run)),
            *(sum(not one.far for one in run), len(ordered), sum(not one.other_order for one in ordered)),
        ]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        rows.append([experiment.name, *map(str, counts)])
    columns = [
        *("table", "rows", "FedDyn got there", "and FedAvg", f"of FedDyn's, within {TOLERANCE:.0%}"),
        *("methods can be compared", "in the paper's order"),
    ]
    note = f"Within {TOLERANCE:.0%}: no method's count in the paper lies further outside the range of ours."
    return Table("rows of the paper's tables", columns, [*rows, ["all", *map(str, totals)]], [note])
