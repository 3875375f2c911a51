"""`feddyn sweep`: search hyperparameters."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.cli.data import provide
from feddyn.cli.engine import alone, engine, start
from feddyn.cli.interrupts import interrupted
from feddyn.cli.show import Place, progress, say, show
from feddyn.errors import InputError
from feddyn.records.comparison import FILE
from feddyn.views.tables import Table, transmitted

if TYPE_CHECKING:
    from feddyn.search.space import Outcome, SearchedMethod
    from feddyn.settings.documents import Document

SHOWN = 8
"""Candidates of a method in the table on the terminal; the file has all."""


@click.command()
@click.argument("file", type=Place())
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the runs (not of the search, which is in [sweep]).")
@click.option("--out", type=Place(), help="The directory to keep it in (default: runs/FILE-sweep).")
@engine
def sweep(file: Path, seed: int | None, out: Path | None, **options: Any) -> None:
    """Search the hyperparameters that the [sweep] table of a settings FILE asks for.

    Grid, random, or successive halving. The best setting of every method is written to best.toml, for `feddyn run`.
    The same command goes on with a search that was interrupted.
    """
    from feddyn.settings.documents import read

    document = read(file)
    alone("sweep")
    if seed is not None:
        document["seed"] = seed
        if isinstance(population := document.get("population"), dict):
            population.pop("seed", None)  # it follows the run's seed
    search(document, out or Path("runs") / f"{file.stem}-sweep", options, file.parent)


def search(document: "Document", directory: Path, options: Mapping[str, Any], folder: Path = Path()) -> None:
    """Carry out a search, or what is left of it, and show and write down what it found. Code of one's own is looked for
    in `folder`."""
    import tomli_w

    from feddyn.records.files import refuse_links, write_code, write_whole
    from feddyn.search.driver import Searching, require_sound
    from feddyn.search.space import best, read

    refuse_links(directory)
    how, methods = read(document, folder)
    for source in require_sound(methods, folder):
        provide(source)
    if any((directory / name).exists() for name in ("setting.toml", FILE)):
        raise InputError(f"{directory} has the record of a run or comparison: choose another directory for the search")
    directory.mkdir(parents=True, exist_ok=True)
    study = Searching(directory, start(options), batch=not options["track"], folder=folder)
    try:
        with progress("candidate") as report:
            for done, total, outcome in study.outcomes(how, methods):
                report(outcome.candidate.label, done, total, f"{_say(outcome)}: {_figure(outcome)}")
    except KeyboardInterrupt:
        interrupted("the same command goes on from here (candidates that trained as one batch start again)")
    table = _table(methods, study.found)
    table.save(directory, "candidates")
    shown = [row for row in table.rows if int(row[1]) <= SHOWN]
    show(Table(table.title, table.columns, shown))
    if len(shown) < len(table.rows):
        say(f"{len(table.rows) - len(shown)} more in {directory / 'candidates.csv'}")
    for method in methods:
        if not any(outcome.rounds for outcome in study.found if outcome.candidate.label == method.label):
            say(f"{method.label}: no candidate completed a round, so it is not in best.toml")
        write_code(directory, method.code)
    text = "# the best of a search; for feddyn run\n" + tomli_w.dumps(best(methods, study.found))
    write_whole(directory / "best.toml", [text.encode()])
    say(f"the best setting: {directory / 'best.toml'}; all candidates: {directory / 'candidates.csv'}")


def _say(outcome: "Outcome") -> str:
    values = outcome.candidate.changes.items()
    return ", ".join(
        f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}" for key, value in values
    )


def _figure(outcome: "Outcome") -> str:
    return outcome.status if outcome.status == "diverged" else f"{outcome.metric} {outcome.value:.4f}"


def _table(methods: "Sequence[SearchedMethod]", found: "Sequence[Outcome]") -> Table:
    rows, targets = [], any("target" in method.document for method in methods)
    for method in methods:
        mine: dict[str, Outcome] = {}
        for outcome in found:  # values that were drawn twice stand there once
            name = outcome.candidate.name
            if outcome.candidate.label == method.label and (name not in mine or outcome.rank < mine[name].rank):
                mine[name] = outcome
        for place, outcome in enumerate(sorted(mine.values(), key=lambda outcome: outcome.rank), 1):
            words = _say(outcome) or "as it is"
            count = [transmitted(outcome.transmitted, outcome.sent)] if targets else []
            rows.append(
                [method.label, str(place), words, *count, _figure(outcome), str(outcome.rounds), outcome.status]
            )
    target = ["models transmitted until the target"] if targets else []
    columns = ["method", "rank", "values", *target, "best figure", "rounds", "status"]
    return Table("candidates, the best of each method first", columns, rows)
