"""`feddyn reproduce`: every table and figure of the paper, ours beside theirs."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.cli.data import provide
from feddyn.cli.engine import alone, engine, processes, seconds, start
from feddyn.cli.interrupts import interrupted
from feddyn.cli.queue import Wanted, chosen, read_queue
from feddyn.cli.show import Place, progress, say, show
from feddyn.errors import FeddynError, InputError, nearest

if TYPE_CHECKING:
    from feddyn.paper.searches import PaperSearch
    from feddyn.paper.trials import Choice
    from feddyn.views.tables import Table

OUT = Path("runs/paper")
UNSAID = Path("-")
"""Instead of a directory: that of --out."""
QUEUE = "queue.txt"
"""The copy of a queue in the directory of its runs."""


@click.command("reproduce", short_help="Reproduce a table or figure of the paper.")
@chosen
@click.option("--list", "listing", is_flag=True, help="All tables and figures, and what they are made of.")
@click.option(
    "--queue",
    type=Place(),
    metavar="FILE",
    help="Many of them: every line of FILE has a NAME with --row, --method, --rounds, --seeds, --lower.",
)
@click.option(
    "--status",
    is_flag=False,
    flag_value=UNSAID,
    type=Place(),
    metavar="[DIR]",
    help="Say what is done, running and left there, and how it compares with the paper.",
)
@click.option("--budget", callback=seconds, metavar="TIME", help="Stop after this time (2h, 90m).")
@click.option("--dry-run", is_flag=True, help="Say what would run.")
@click.option("--toml", is_flag=True, help="Print the row as a setting for `feddyn run`, to change as you like.")
@click.option("--out", type=Place(), default=OUT, show_default=True)
@engine
def reproduce(
    name: str | None,
    choice: "Choice",
    listing: bool,
    queue: Path | None,
    status: Path | None,
    budget: float | None,
    dry_run: bool,
    toml: bool,
    out: Path,
    **options: Any,
) -> None:
    """Reproduce a table or figure of the paper, ours beside theirs; without NAME, list them.

    Runs are kept in the directory --out, under names of their own, so that the same command goes on where it was
    stopped, and a run that two tables share is computed once. A run stops when it has reached all its targets. Several
    runs go side by side, the cheapest first.
    """
    from feddyn.paper.catalogue import as_setting, experiments
    from feddyn.paper.searches import searches
    from feddyn.paper.trials import Choice
    from feddyn.reports.study import listing as table

    ways = (name, listing, queue, status)
    if sum(map(bool, ways)) > 1 or (name is None and (choice != Choice() or toml)):
        raise InputError("give a NAME with its options, or one of --list, --queue and --status")
    if status:
        _status(out if status == UNSAID else status)
        return
    if toml and choice != Choice(choice.rows, choice.methods):
        raise InputError("--toml prints a row as the paper has it: leave out --rounds, --seeds and --lower")
    alone("reproduce")
    if queue:
        _runs(*read_queue(queue), budget, out, dry_run, options)
    elif name is None:
        show(table(experiments(), searches()))
    elif name in experiments():
        if toml:
            import tomli_w

            jobs = choice.jobs(experiments()[name])
            click.echo(f"# {experiments()[name].title}: {jobs[0].row}\n{tomli_w.dumps(as_setting(jobs))}", nl=False)
            return
        _runs([(experiments()[name], choice)], None, budget, out, dry_run, options)
    elif toml:
        raise InputError(f"{name} is not made of single runs: --toml is for the others (feddyn reproduce --list)")
    elif name in searches():
        _searches(searches()[name], choice, budget, out, dry_run, options)
    elif name == "heterogeneity":
        _heterogeneity(choice, out, dry_run)
    else:
        known = [*experiments(), *searches(), "heterogeneity"]
        raise InputError(f"{name!r} is not a table or figure; {nearest(name, known)}")


def _runs(
    wanted: Wanted, queue: bytes | None, budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]
) -> None:
    from feddyn.engine.memory import keep_freed_memory
    from feddyn.paper.study import Budget, Study
    from feddyn.records.files import write_whole
    from feddyn.reports.study import hyperparameters, outlook, tables

    study = Study(wanted, out)
    if dry_run:
        show(outlook(study.found))
        if len({trial.job.row for trial in study.found}) == 1:
            show(hyperparameters([trial.job for trial in study.found]))
        return
    study.fetch(provide)
    if queue:
        try:
            out.mkdir(parents=True, exist_ok=True)
            write_whole(out / QUEUE, [queue])
        except OSError as error:
            raise InputError(f"the directory {out} cannot be used: {error.strerror}") from None
    keep_freed_memory()
    time = Budget(budget)
    try:
        with (
            progress("round") as report,
            closing(study.train(time, partial(start, options), processes(options))) as rounds,
        ):
            for trial, line in rounds:
                figures = next(reversed(line.get("models", {"": {}}).values()))
                report(trial.label, line["round"], trial.rounds, f"accuracy {figures.get('accuracy', 0):.4f}")
    except KeyboardInterrupt:
        interrupted("the same command goes on from here")
    _show(*tables(study, out))
    for name, why in study.absent.items():
        say(f"left out, {name}: {why}")
    done = sum(trial.complete for trial in study.found)
    rest = "" if done == len(study.found) else "; the same command goes on with the others"
    say(f"{done} of {len(study.found)} runs got as far as asked, in {out}{rest}")
    say(f"tables, figures and a page: feddyn report {out}")
    if problems := [trial.problem for trial in study.found if trial.problem]:
        raise FeddynError("; ".join(problems))


def _status(directory: Path) -> None:
    from feddyn.paper.catalogue import experiments
    from feddyn.reports.study import status

    queue = directory / QUEUE
    _show(*status(directory, experiments(), read_queue(queue)[0] if queue.exists() else None))


def _show(made: "Sequence[Table]", left_out: Sequence[str]) -> None:
    for table in made:
        show(table)
    for why in left_out:
        say(f"left out: {why}")


def _searches(
    search: "PaperSearch", choice: "Choice", budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]
) -> None:
    from feddyn.engine.pool import streams
    from feddyn.paper.searches import run
    from feddyn.paper.study import Budget
    from feddyn.reports.search import save_paper

    time, rows = Budget(budget), search.rows(choice, out)
    begin = start(options, count := min(processes(options), len(rows)))
    found = {row: row.searching(begin) for row in rows}
    todo = [row for row, searching in found.items() if searching.known() is None]
    if dry_run:
        say(f"{len(rows)} searches, of which {len(todo)} are to go: {', '.join(str(row.directory) for row in todo)}")
        return
    for source in dict.fromkeys(source for searching in found.values() for source in searching.sources()):
        provide(source)
    try:
        work = partial(run, start=begin, batch=not options["track"])
        with progress("candidate") as report, closing(streams(work, todo, count)) as running:
            for row, (done, total, outcome) in running:
                words = f"{outcome.candidate.words}: {outcome.figure}"
                report(f"{row.directory.name} {outcome.candidate.label}", done, total, words)
                if time.left <= 0:
                    break
    except KeyboardInterrupt:
        interrupted("the same command goes on from here (candidates that trained as one batch start again)")
    for table in save_paper(search, {row: row.searching(begin) for row in rows}, out):
        show(table)
    say(f"tables and curves of the searches that are complete: {out / search.name}")


def _heterogeneity(choice: "Choice", out: Path, dry_run: bool) -> None:
    from feddyn.data.datasets import sources
    from feddyn.reports.heterogeneity import save_paper

    if dry_run:
        say("nothing is trained: a few seconds")
        return
    provide("mnist")
    show(save_paper(sources.load("mnist").y, choice, out / "heterogeneity"))
    say(f"table and figure: {out / 'heterogeneity'}")
