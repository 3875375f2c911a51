"""`feddyn report`."""

from collections.abc import Sequence
from pathlib import Path

import click

from feddyn.cli.completion import records
from feddyn.cli.show import Place, say, show


@click.command()
@click.argument("directories", nargs=-1, required=True, type=Place(), shell_complete=records)
@click.option("--out", type=Place(), help="Where to write it (default: report/ in the first one).")
def report(directories: Sequence[Path], out: Path | None) -> None:
    """Tables, figures and an interactive page of all runs whose records are in or below DIRECTORIES.

    Runs of the paper's experiments (feddyn reproduce) become its tables, ours beside theirs.
    """
    from feddyn.records.files import refuse_links
    from feddyn.reports.report import make

    where = out or directories[0] / "report"
    refuse_links(where, itself=out is None)  # a directory that was named may be a link, but not one that was found
    made = make(directories, where)
    for table in made.tables:
        show(table)
    for why in made.missing:
        say(f"left out: {why}")
    say(f"{len(made.files)} files in {where}" + ("" if made.missing else f"; open {where / 'index.html'}"))
