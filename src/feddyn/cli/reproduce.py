"""`feddyn reproduce`: every table and figure of the paper, ours beside theirs."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.cli.data import provide
from feddyn.cli.engine import alone, engine, start
from feddyn.cli.interrupts import interrupted
from feddyn.cli.outlook import Choice, as_setting, costs, foresee, list_all, tell_origins
from feddyn.cli.show import progress, say, show
from feddyn.errors import FeddynError, InputError, nearest

if TYPE_CHECKING:
    from feddyn.paper.catalogue import Experiment
    from feddyn.paper.study import Trial


def _seconds(context: click.Context, parameter: click.Parameter, words: str | None) -> float | None:
    """A time, as in 2h, 1h30m or 90s."""
    if words is None:
        return None
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", words.replace(" ", ""))
    if found is None or not any(found.groups()):
        raise click.BadParameter(f"{words!r} is not a time: write it as 2h, 90m or 1h30m")
    seconds = sum(float(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True))
    if not 0 < seconds < float("inf"):
        raise click.BadParameter(f"{words!r} is no time at all")
    return seconds


@click.command()
@click.argument("name", required=False)
@click.option(
    "--list", "listing", is_flag=True, help="All tables and figures, their runs, and how long they take here."
)
@click.option(
    "--row", "rows", multiple=True, help="Only this row (mnist-iid-10), or a pattern ('mnist-*'); repeatable."
)
@click.option("--method", "methods", multiple=True, help="Only this method; repeatable.")
@click.option("--rounds", type=click.IntRange(min=1), help="At most so many rounds a run, within the paper's.")
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
    from feddyn.paper.catalogue import experiments

    methods = [method.lower() for method in options.pop("methods")]
    choice = Choice(options.pop("rows"), methods, options.pop("rounds"), options.pop("seeds"))
    dry_run, toml = options.pop("dry_run"), options.pop("toml")
    if listing or name is None:
        if choice.rows or choice.methods or dry_run or toml or budget:
            raise InputError("these options need the name of a table or figure, and no --list")
        list_all(options["workers"])
        return
    alone("reproduce")
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
        click.echo(as_setting(experiment, choice), nl=False)
        return
    _reproduce(experiment, choice, budget, out, dry_run, options)


def _reproduce(
    experiment: "Experiment", choice: Choice, budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]
) -> None:
    from feddyn.paper.study import trials

    found = trials(experiment, out, choice.seeds, choice.rounds, lambda job: choice.keep(job.row, job.method))
    if not found:
        raise InputError(f"{experiment.name} has no run that is both in these rows and of these methods")
    todo = [trial for trial in found if not trial.complete]
    absent = {} if dry_run else _absent(todo)
    todo = [trial for trial in todo if trial.job.document["population"]["source"] not in absent]
    if absent and not todo and not any(trial.history for trial in found):
        raise FeddynError("; ".join(absent.values()))
    seconds = costs(experiment, todo, options["workers"]) if dry_run or len(todo) > 1 else [0.0] * len(todo)
    if dry_run:
        foresee(experiment, found, todo, seconds, budget)
        tell_origins(experiment, choice)
        return
    try:
        _train(todo, seconds, budget, options)
    except KeyboardInterrupt:
        interrupted("the same command goes on from here")
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


def _train(todo: "Sequence[Trial]", costs: Sequence[float], budget: float | None, options: Mapping[str, Any]) -> None:
    """Run unit after unit; under a budget, one that still fits before one that does not."""
    from feddyn.engine.memory import keep_freed_memory
    from feddyn.paper.study import Budget, run, units

    keep_freed_memory()
    time, cost = Budget(budget), {id(trial): seconds for trial, seconds in zip(todo, costs, strict=True)}
    waiting = units(todo, dict(enumerate(costs)))
    with progress("round") as report:
        while waiting and time.left > 0:
            fits = (unit for unit in waiting if sum(cost[id(trial)] for trial in unit) <= time.left)
            unit = next(fits, waiting[0])
            waiting.remove(unit)
            shared: dict[str, Any] = {}
            for trial in unit:
                for line in run(trial, time, start(options), shared) if time.left > 0 else ():
                    figures = next(reversed(line.get("models", {"": {}}).values()))
                    if line["round"] < trial.rounds:
                        report(trial.label, line["round"], trial.rounds, f"accuracy {figures.get('accuracy', 0):.4f}")
                report(trial.label, len(trial.history), len(trial.history), trial.state)


def _conclude(experiment: "Experiment", found: "Sequence[Trial]", out: Path, absent: Mapping[str, str]) -> None:
    from feddyn.records.reader import find
    from feddyn.reports.paper import table
    from feddyn.reports.records import entries

    rows = {trial.job.row for trial in found}
    records, _ = find([out])
    show(table(experiment, [entry for entry in entries(experiment, records) if entry.job.row in rows]))
    for name, why in absent.items():
        say(f"left out, {name}: {why}")
    done = sum(trial.complete for trial in found)
    rest = "" if done == len(found) else "; the same command goes on with the others"
    say(f"{done} of {len(found)} runs got as far as asked, in {out}{rest}")
    say(f"tables, figures and a page: feddyn report {out}")
