"""`feddyn sweep`: search hyperparameters."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.cli.data import provide
from feddyn.cli.engine import alone, engine, start
from feddyn.cli.show import progress, show
from feddyn.reports.tables import Table, transmitted

if TYPE_CHECKING:
    from feddyn.experiments.documents import Document
    from feddyn.experiments.search import Method, Outcome

SHOWN = 8
"""Candidates of a method in the table on the terminal; the file has all."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the runs (not of the search, which is in [sweep]).")
@click.option("--out", type=click.Path(path_type=Path), help="The directory to keep it in (default: runs/FILE-sweep).")
@engine
def sweep(file: Path, seed: int | None, out: Path | None, **options: Any) -> None:
    """Search the hyperparameters that the [sweep] table of a settings FILE asks for.

    Grid, random, or successive halving. The best setting of every method is written to best.toml, for `feddyn run`.
    The same command goes on with a search that was interrupted.
    """
    from feddyn.experiments.documents import read

    document = read(file)
    alone("sweep")
    if seed is not None:
        document["seed"] = seed
        if isinstance(population := document.get("population"), dict):
            population.pop("seed", None)  # it follows the run's seed
    search(document, out or Path("runs") / f"{file.stem}-sweep", options)


def search(document: "Document", directory: Path, options: Mapping[str, Any]) -> None:
    """Carry out a search, or what is left of it, and show and write down what it found."""
    import tomli_w

    from feddyn.experiments.search import best, read
    from feddyn.experiments.searching import Searching
    from feddyn.simulation.files import write_whole

    if isinstance(population := document.get("population"), dict):
        provide(population.get("source"))
    how, methods = read(document)
    directory.mkdir(parents=True, exist_ok=True)
    study = Searching(directory, start(options))
    try:
        with progress("candidate") as report:
            for done, total, outcome in study.outcomes(how, methods):
                figure = f"{_say(outcome)}: {outcome.metric} {outcome.value:.4g}"
                report(outcome.candidate.label, done, total, figure)
    except KeyboardInterrupt:
        click.echo("feddyn: interrupted; the same command goes on from here", err=True)
        sys.exit(130)
    table = _table(methods, study.found)
    table.save(directory, "candidates")
    show(Table(table.title, table.columns, [row for row in table.rows if int(row[1]) <= SHOWN], table.notes))
    text = "# the best of a search; for feddyn run\n" + tomli_w.dumps(best(methods, study.found))
    write_whole(directory / "best.toml", [text.encode()])
    click.echo(f"the best setting: {directory / 'best.toml'}; all candidates: {directory / 'candidates.csv'}")


def _say(outcome: "Outcome") -> str:
    values = outcome.candidate.changes.items()
    return ", ".join(
        f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}" for key, value in values
    )


def _table(methods: "Sequence[Method]", found: "Sequence[Outcome]") -> Table:
    rows = []
    for method in methods:
        mine = {outcome.candidate.name: outcome for outcome in found if outcome.candidate.label == method.label}
        for place, outcome in enumerate(sorted(mine.values(), key=lambda outcome: outcome.rank), 1):
            words = _say(outcome) or "as it is"
            count = transmitted(outcome.transmitted, outcome.sent) if "target" in method.document else "-"
            figure = f"{outcome.metric} {outcome.value:.4f}" if outcome.rounds else "-"
            rows.append([method.label, str(place), words, count, figure, str(outcome.rounds), outcome.status])
    columns = ["method", "rank", "values", "models transmitted until the target", "best figure", "rounds", "status"]
    return Table("candidates, the best of each method first", columns, rows)
