"""`feddyn report`."""

from collections.abc import Sequence
from pathlib import Path

import click

from feddyn.cli.completion import records
from feddyn.cli.interrupts import deafen
from feddyn.cli.show import Place, say, show

ROWS = 20
"""Rows of a table that are printed; its files have all."""


@click.command(short_help="Write tables, figures and an interactive page of runs.")
@click.argument("directories", nargs=-1, required=True, type=Place(), shell_complete=records)
@click.option("--out", type=Place(), help="Where to write it (default: report/ in the first one).")
@click.option("--live", is_flag=True, help="Write nothing: serve the page to this machine while runs go on.")
@click.option("--port", type=click.IntRange(1024, 65535), help="With --live: the port (default: a free one).")
def report(directories: Sequence[Path], out: Path | None, live: bool, port: int | None) -> None:
    """Tables, figures and an interactive page of all runs whose records are in or below DIRECTORIES.

    Runs of the paper's experiments (feddyn reproduce) become its tables, ours beside theirs. With --live, the page is
    served on 127.0.0.1, and new rounds and runs appear by themselves.
    """
    if live:
        if out:
            raise click.UsageError("--live writes nothing: leave out --out")
        _serve(directories, port or 0)
        return
    if port:
        raise click.UsageError("--port is for --live")
    from feddyn.records.files import refuse_links
    from feddyn.reports.report import make

    where = out or directories[0] / "report"
    refuse_links(where, itself=out is None)  # a directory that was named may be a link, but not one that was found
    made = make(directories, where)
    for table in made.tables:
        show(table.first(ROWS, where / "tables"))
    for why in made.missing:
        say(f"left out: {why}")
    say(f"{len(made.files)} files in {where}" + ("" if made.missing else f"; open {where / 'index.html'}"))


def _serve(directories: Sequence[Path], port: int) -> None:
    from feddyn.reports.live import Server

    with Server(directories, port) as server:
        say(f"open {server.address}: it shows new rounds and runs as they come; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            deafen()
            say("the page is no longer served; the records are as they were")
