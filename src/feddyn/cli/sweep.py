"""`feddyn sweep`: search hyperparameters."""

from pathlib import Path
from typing import Any

import click

from feddyn.cli.completion import settings_files
from feddyn.cli.data import provide
from feddyn.cli.engine import alone, engine, start
from feddyn.cli.interrupts import interrupted
from feddyn.cli.show import Place, progress, say, show


@click.command(short_help="Search the hyperparameters of a settings file.")
@click.argument("file", type=Place(), shell_complete=settings_files)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the runs (not of the search, which is in [sweep]).")
@click.option("--out", type=Place(), help="The directory to keep it in (default: runs/FILE-sweep).")
@engine
def sweep(file: Path, seed: int | None, out: Path | None, **options: Any) -> None:
    """Search the hyperparameters that the [sweep] table of a settings FILE asks for.

    Grid, random, or successive halving. The best setting of every method is written to best.toml, for `feddyn run`.
    The same command goes on with a search that was interrupted.
    """
    from feddyn.reports.search import save
    from feddyn.search.driver import Searching
    from feddyn.settings.documents import read

    document = read(file)
    alone("sweep")
    if seed is not None:
        document["seed"] = seed
        if isinstance(population := document.get("population"), dict):
            population.pop("seed", None)  # it follows the run's seed
    directory = out or Path("runs") / f"{file.stem}-sweep"
    study = Searching(document, directory, start(options), batch=not options["track"], folder=file.parent)
    for source in study.sources():
        provide(source)
    try:
        with progress("candidate") as report:
            for done, total, outcome in study.outcomes():
                report(outcome.candidate.label, done, total, f"{outcome.candidate.words}: {outcome.figure}")
    except KeyboardInterrupt:
        interrupted("the same command goes on from here (candidates that trained as one batch start again)")
    show(save(study))
    for label in study.without_a_round:
        say(f"{label}: no candidate completed a round, so it is not in best.toml")
    say(f"the best setting: {directory / 'best.toml'}; all candidates: {directory / 'candidates.csv'}")
