"""`feddyn reproduce`: every table and figure of the paper, ours beside theirs."""

import re
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from feddyn.cli.data import provide
from feddyn.cli.engine import Live, engine, simulation
from feddyn.cli.show import progress, show
from feddyn.errors import FeddynError, InputError, nearest
from feddyn.reports.tables import Table, duration

if TYPE_CHECKING:
    from feddyn.experiments.catalogue import Experiment
    from feddyn.experiments.estimate import Calibration
    from feddyn.experiments.study import Trial


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


def _seconds(context: click.Context, parameter: click.Parameter, words: str | None) -> float | None:
    """A time, as in 2h, 1h30m or 90s."""
    if words is None:
        return None
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", words.replace(" ", ""))
    if found is None or not any(found.groups()):
        raise click.BadParameter(f"{words!r} is not a time: write it as 2h, 90m or 1h30m")
    return sum(float(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True))


@click.command()
@click.argument("name", required=False)
@click.option(
    "--list", "listing", is_flag=True, help="All tables and figures, their runs, and how long they take here."
)
@click.option(
    "--row", "rows", multiple=True, help="Only this row (mnist-iid-10), or a pattern ('mnist-*'); repeatable."
)
@click.option("--method", "methods", multiple=True, help="Only this method; repeatable.")
@click.option("--rounds", type=click.IntRange(min=1), help="At most so many rounds a run; it can go on later.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds, from 0 on.")
@click.option("--budget", callback=_seconds, metavar="TIME", help="Stop after this time (2h, 90m), whole rows first.")
@click.option("--dry-run", is_flag=True, help="Say what would run, and how long it would take on this machine.")
@click.option("--toml", is_flag=True, help="Print the row as a setting for `feddyn run`, to change as you like.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/paper"), show_default=True)
@engine
def reproduce(name: str | None, listing: bool, budget: float | None, out: Path, **options: Any) -> None:
    """Reproduce a table or figure of the paper, ours beside theirs; without NAME, list them.

    Runs are kept in the directory --out, under names of their own, so that the same command goes on where it was
    stopped, and a run that two tables share is computed once. A run stops when it has reached all its targets.
    """
    from feddyn.cli.special import SPECIAL
    from feddyn.experiments.catalogue import experiments

    choice = Choice(options.pop("rows"), options.pop("methods"), options.pop("rounds"), options.pop("seeds"))
    dry_run, toml = options.pop("dry_run"), options.pop("toml")
    if listing or name is None:
        _list(options["workers"])
        return
    if name in SPECIAL:
        special = SPECIAL[name]
        choice.check(name, special.rows, special.methods)
        if toml:
            raise InputError(f"{name} is not made of single runs: --toml is for the others (feddyn reproduce --list)")
        special.go(choice, budget, out, dry_run, options)
        return
    if name not in experiments():
        raise InputError(f"{name!r} is not a table or figure; {nearest(name, [*experiments(), *SPECIAL])}")
    experiment = experiments()[name]
    choice.check(name, experiment.rows, list(dict.fromkeys(job.method for job in experiment.jobs)))
    if toml:
        click.echo(_as_setting(experiment, choice), nl=False)
        return
    _reproduce(experiment, choice, budget, out, dry_run, options)


def _reproduce(
    experiment: "Experiment", choice: Choice, budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]
) -> None:
    from feddyn.experiments.study import trials

    found = trials(experiment, out, choice.seeds, choice.rounds, lambda job: choice.keep(job.row, job.method))
    if not found:
        raise InputError(f"{experiment.name} has no run that is both in these rows and of these methods")
    absent = {} if dry_run else _absent(found)
    todo = [trial for trial in found if not trial.complete and trial.job.document["population"]["source"] not in absent]
    if absent and not todo:
        raise FeddynError("; ".join(absent.values()))
    costs = _costs(experiment, todo, options["workers"]) if dry_run or len(todo) > 1 else [0.0] * len(todo)
    if dry_run:
        _foresee(experiment, found, todo, costs)
        _tell_origins(experiment, choice)
        return
    try:
        _train(todo, costs, budget, options)
    except KeyboardInterrupt:
        click.echo("feddyn: interrupted; the same command goes on from here", err=True)
        sys.exit(130)
    _conclude(experiment, found, out, absent)


def _absent(found: "Sequence[Trial]") -> dict[str, str]:
    """Data sets that cannot be had, and why."""
    absent = {}
    for source in dict.fromkeys(trial.job.document["population"]["source"] for trial in found):
        try:
            provide(source)
        except FeddynError as error:
            absent[source] = str(error)
    return absent


def _calibration(workers: int | None) -> "Calibration":
    from feddyn.experiments.estimate import Calibration
    from feddyn.simulation.crew import cores

    return Calibration(workers or cores())


def _costs(experiment: "Experiment", todo: "Sequence[Trial]", workers: int | None) -> list[float]:
    """Seconds that each run still needs, by a calibration on this machine."""
    from feddyn.experiments.study import expected_rounds

    calibration = _calibration(workers)
    return [calibration.seconds(trial.job.document, expected_rounds(trial, experiment)) for trial in todo]


def _train(todo: "Sequence[Trial]", costs: Sequence[float], budget: float | None, options: Mapping[str, Any]) -> None:
    """Run unit after unit; under a budget, one that still fits before one that does not."""
    from feddyn.experiments.study import Budget, run, units
    from feddyn.simulation.memory import keep_freed_memory

    keep_freed_memory()
    time, cost = Budget(budget), {id(trial): seconds for trial, seconds in zip(todo, costs, strict=True)}
    waiting = units(todo, dict(enumerate(costs)))
    with progress("round") as report:
        while waiting and time.left > 0:
            fits = (unit for unit in waiting if sum(cost[id(trial)] for trial in unit) <= time.left)
            unit = next(fits, waiting[0])
            waiting.remove(unit)
            for trial in unit:
                label = f"{trial.job.row} {trial.job.label}" + (f" seed {trial.seed}" if trial.seed else "")
                live = Live(options, trial.directory, label, trial.job.setting(trial.seed))
                lines = run(trial, time, lambda plan, where: simulation(plan, where, options))
                for line in lines if time.left > 0 else ():
                    live.line(line)
                    figures = next(reversed(line.get("models", {"": {}}).values()))
                    if line["round"] < trial.rounds:
                        report(label, line["round"], trial.rounds, f"accuracy {figures.get('accuracy', 0):.4f}")
                live.close("finished" if trial.complete else "paused")
                report(label, len(trial.history), len(trial.history), trial.state)


def _foresee(
    experiment: "Experiment", found: "Sequence[Trial]", todo: "Sequence[Trial]", costs: Sequence[float]
) -> None:
    from feddyn.experiments.study import expected_rounds

    cost = {id(trial): seconds for trial, seconds in zip(todo, costs, strict=True)}
    rows = []
    for trial in found:
        more = expected_rounds(trial, experiment) if id(trial) in cost else 0
        time = duration(cost[id(trial)]) if id(trial) in cost else "-"
        rows.append([trial.job.row, trial.job.label, str(trial.seed), trial.state, str(more), time])
    notes = [
        f"{len(todo)} runs to go, about {duration(sum(costs))} on this machine, by a short calibration; as many "
        "rounds as the paper needed, or all where it does not say."
    ]
    show(
        Table(
            f"{experiment.name}: what would run", ["row", "method", "seed", "now", "rounds to go", "time"], rows, notes
        )
    )


def _tell_origins(experiment: "Experiment", choice: Choice) -> None:
    """Of a single row: where its hyperparameters come from."""
    from feddyn.experiments.appendix import origins

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
    show(Table("its hyperparameters", ["key", "value", "methods", "where it comes from"], rows))


def _conclude(experiment: "Experiment", found: "Sequence[Trial]", out: Path, absent: Mapping[str, str]) -> None:
    from feddyn.reports.paper import table
    from feddyn.reports.records import entries, find

    rows = {trial.job.row for trial in found}
    shown = [entry for entry in entries(experiment, find([out])) if entry.job.row in rows]
    show(table(experiment, shown))
    for name, why in absent.items():
        click.echo(f"left out, {name}: {why}")
    done = sum(trial.complete for trial in found)
    rest = "" if done == len(found) else "; the same command goes on with the others"
    click.echo(f"{done} of {len(found)} runs complete in {out}{rest}. Tables, figures and a page: feddyn report {out}")


def _as_setting(experiment: "Experiment", choice: Choice) -> str:
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
    shared = {k: v for k, v in first["solver"].items() if all(job.document["solver"].get(k) == v for job in jobs)}
    compare = []
    for job in jobs:
        solver = {k: v for k, v in job.document["solver"].items() if k not in shared}
        compare.append({"label": job.label, "algorithm": job.document["algorithm"], "solver": solver})
    text = tomli_w.dumps({**common, "solver": shared, "compare": compare})
    return f"# {experiment.title}: {jobs[0].row}\n{text}"


def _list(workers: int | None) -> None:
    from feddyn.cli.special import SPECIAL
    from feddyn.experiments.catalogue import experiments
    from feddyn.experiments.study import expected_rounds, trials

    rows = []
    calibration = _calibration(workers)
    for name, experiment in experiments().items():
        found = trials(experiment, Path(), 1, None, lambda job: True)
        time = sum(calibration.seconds(t.job.document, expected_rounds(t, experiment)) for t in found)
        rows.append(
            [name, experiment.kind, experiment.title, str(len(experiment.rows)), str(len(found)), duration(time)]
        )
    for name, special in SPECIAL.items():
        time = special.estimate(calibration)
        rows.append([name, special.kind, special.title, str(len(special.rows)), str(special.runs), duration(time)])
    notes = [
        f"Times are for {calibration.workers} processes on this machine, by a short calibration, if every run needs as "
        "many rounds as the paper's; runs that two of them share are computed once.",
        "Every table comes with its convergence curves (feddyn report).",
    ]
    show(Table("tables and figures of the paper", ["name", "kind", "what", "rows", "runs", "time"], rows, notes))
