"""What `feddyn reproduce` would do, and how long it would take: the list, the dry run, a row as a setting."""

from collections.abc import Sequence
from fnmatch import fnmatch
from typing import TYPE_CHECKING, NamedTuple

from feddyn.cli.show import say, show
from feddyn.errors import InputError, nearest
from feddyn.views.tables import Table, duration

if TYPE_CHECKING:
    from feddyn.paper.catalogue import Experiment
    from feddyn.paper.estimate import Calibration
    from feddyn.paper.study import Trial


class Choice(NamedTuple):
    """What of an experiment is wanted."""

    rows: Sequence[str]
    methods: Sequence[str]
    rounds: int | None
    seeds: int

    def row(self, name: str) -> bool:
        """Whether a row is; rows may be patterns, as in 'mnist-*'."""
        return not self.rows or any(fnmatch(name, pattern) for pattern in self.rows)

    def keep(self, row: str, method: str) -> bool:
        """Whether a run is."""
        return self.row(row) and (not self.methods or method in self.methods)

    def check(self, name: str, rows: Sequence[str], methods: Sequence[str]) -> None:
        """Refuse rows and methods that the experiment does not have."""
        for pattern in self.rows:
            if not any(fnmatch(row, pattern) for row in rows):
                raise InputError(f"{name} has no row {pattern!r}; {nearest(pattern, rows)}")
        for method in self.methods:
            if not methods:
                raise InputError(f"{name} is made as a whole: leave out --method")
            if method not in methods:
                raise InputError(f"{name} has no method {method!r}; {nearest(method, methods)}")


def calibration(workers: int | None) -> "Calibration":
    from feddyn.engine.executors.forked import cores
    from feddyn.paper.estimate import Calibration

    say("timing the networks on this machine ...", err=True)
    return Calibration(workers or cores())


def costs(experiment: "Experiment", todo: "Sequence[Trial]", workers: int | None) -> list[float]:
    """Seconds that each run still needs, by a calibration on this machine."""
    from feddyn.paper.study import expected_rounds

    timed = calibration(workers)
    return [timed.seconds(trial.job.document, expected_rounds(trial, experiment)) for trial in todo]


def foresee(
    experiment: "Experiment",
    found: "Sequence[Trial]",
    todo: "Sequence[Trial]",
    costs: Sequence[float],
    budget: float | None,
) -> None:
    """What would run, and of that with a budget which rows it is enough for."""
    from feddyn.paper.study import expected_rounds, units

    cost = {id(trial): seconds for trial, seconds in zip(todo, costs, strict=True)}
    rows = []
    for trial in found:
        more = expected_rounds(trial, experiment) if id(trial) in cost else 0
        words = duration(cost[id(trial)]) if id(trial) in cost else "-"
        rows.append([trial.job.row, trial.job.label, str(trial.seed), trial.state, str(more), words])
    notes = [
        f"{len(todo)} runs to go, about {duration(sum(costs))} on this machine, by a short calibration; as many "
        "rounds as the paper needed, or all where it does not say."
    ]
    if budget is not None:
        left, fits = budget, []
        for unit in units(todo, dict(enumerate(costs))):
            if (time := sum(cost[id(trial)] for trial in unit)) <= left:
                left -= time
                fits.append(unit[0].job.row + (f" seed {unit[0].seed}" if unit[0].seed else ""))
        notes.append(f"Rows that {duration(budget)} are enough for: {', '.join(fits) or 'none, one would be begun'}.")
    show(
        Table(
            f"{experiment.name}: what would run", ["row", "method", "seed", "now", "rounds to go", "time"], rows, notes
        )
    )


def tell_origins(experiment: "Experiment", choice: Choice) -> None:
    """Show where the hyperparameters of a single row come from."""
    from feddyn.paper.appendix import origins

    jobs = [job for job in experiment.jobs if choice.keep(job.row, job.method)]
    if len({job.row for job in jobs}) != 1:
        return
    found: dict[tuple[str, str, str], list[str]] = {}
    for job in jobs:
        for key, value, says, searched in origins(job.case, job.document["algorithm"]["name"]) if job.case else ():
            words = f"{says} (the paper searched {', '.join(map(str, searched))})" if searched else says
            table, _, name = key.rpartition(".")
            if value == (job.document[table] if table else job.document).get(name):
                found.setdefault((key, str(value), words), []).append(job.label)
    rows = [[key, value, ", ".join(labels), words] for (key, value, words), labels in found.items()]
    if rows:
        show(Table("its hyperparameters", ["key", "value", "methods", "where it comes from"], rows))


def as_setting(experiment: "Experiment", choice: Choice) -> str:
    """A row as a comparison: what all methods share, and an entry for each."""
    import tomli_w

    jobs = [job for job in experiment.jobs if choice.keep(job.row, job.method)]
    if len({job.row for job in jobs}) != 1:
        raise InputError("--toml prints one row: choose it with --row")
    first = jobs[0].document
    own = ("algorithm", "solver")
    common = {key: value for key, value in first.items() if key not in own}
    if jobs[0].targets:
        common["target"] = {"metric": "accuracy", "value": max(jobs[0].targets)}
    solvers = [job.document["solver"] for job in jobs]
    shared = {k: v for k, v in first["solver"].items() if all(solver.get(k) == v for solver in solvers)}
    if len({solver.get("name") for solver in solvers}) > 1:
        shared = {}  # methods with solvers of their own do not take from a common one
    compare = []
    for job in jobs:
        solver = {k: v for k, v in job.document["solver"].items() if k not in shared}
        compare.append({"label": job.label, "algorithm": job.document["algorithm"], "solver": solver})
    text = tomli_w.dumps({**common, **({"solver": shared} if shared else {}), "compare": compare})
    return f"# {experiment.title}: {jobs[0].row}\n{text}"


def list_all(workers: int | None) -> None:
    from feddyn.cli.special import SPECIAL
    from feddyn.paper.catalogue import experiments
    from feddyn.paper.study import expected_rounds, fresh

    rows = []
    timed = calibration(workers)
    for name, experiment in experiments().items():
        found = fresh(experiment)
        time = sum(timed.seconds(t.job.document, expected_rounds(t, experiment)) for t in found)
        rows.append(
            [name, experiment.kind, experiment.title, str(len(experiment.rows)), str(len(found)), duration(time)]
        )
    for name, special in SPECIAL.items():
        time = special.estimate(timed)
        rows.append([name, special.kind, special.title, str(len(special.rows)), str(special.runs), duration(time)])
    notes = [
        f"Times are for {timed.workers} processes on this machine, by a short calibration, if every run needs as "
        "many rounds as the paper's; runs that two of them share are computed once.",
        "Every table comes with its convergence curves (feddyn report).",
    ]
    show(Table("tables and figures of the paper", ["name", "kind", "what", "rows", "runs", "time"], rows, notes))
