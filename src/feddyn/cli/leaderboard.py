"""`feddyn leaderboard`: methods x settings x seeds, tuned with the same budget."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import feddyn
from feddyn.cli.completion import settings_files
from feddyn.cli.data import provide
from feddyn.cli.engine import alone, engine, start
from feddyn.cli.interrupts import interrupted
from feddyn.cli.show import Place, progress, say, show
from feddyn.errors import InputError, nearest
from feddyn.views.tables import Table

if TYPE_CHECKING:
    from feddyn.search.board import Board


@click.command(short_help="Compare methods that are all tuned alike.")
@click.argument("file", required=False, type=Place(), shell_complete=settings_files)
@click.option(
    "--setting", "settings", multiple=True, help="Only this setting, or those with this in their name; repeatable."
)
@click.option("--method", "methods", multiple=True, help="Only this method; repeatable.")
@click.option("--show-only", is_flag=True, help="Train nothing: make the page of the records that are there.")
@click.option("--out", type=Place(), help="The directory to keep it in (default: runs/leaderboard, or runs/FILE).")
@engine
def leaderboard(
    file: Path | None,
    settings: Sequence[str],
    methods: Sequence[str],
    show_only: bool,
    out: Path | None,
    **options: Any,
) -> None:
    """Compare methods in settings with several seeds, all tuned with the same budget, and write one page of it.

    FILE names settings and methods, yours among them (docs/methods.md); without one, FedDyn, its relatives and its
    rivals are compared on synthetic data, MNIST and CIFAR-10, which takes hours: choose with --setting. The same
    command goes on where it was interrupted, and leaderboard.md is renewed as runs end.
    """
    from feddyn.records.files import refuse_links, write_whole
    from feddyn.reports.leaderboard import page, space, summary
    from feddyn.reports.standings import standings
    from feddyn.search.board import play, read, sources
    from feddyn.settings.documents import read as read_document

    alone("leaderboard")
    chosen = file or Path(feddyn.__file__).parent / "search" / "leaderboard.toml"
    directory = out or Path("runs") / chosen.stem
    refuse_links(directory)
    board = _chosen(read(read_document(chosen), directory, chosen.parent), settings, methods)

    def write() -> Table:
        results = [standings(board, contest) for contest in board.contests]
        directory.mkdir(parents=True, exist_ok=True)
        board.keep_tuned()
        write_whole(directory / "leaderboard.md", [page(board, results).encode()])
        return summary(board, results)

    show(space(board))
    if not show_only:
        for source in sources(board):
            provide(source)
        try:
            with progress("run") as report:
                for step in play(board, start(options), chosen.parent):
                    report(step.contest, step.done, step.total, step.words)
                    if step.judged:
                        write()
        except KeyboardInterrupt:
            write()
            interrupted("the same command goes on from here")
    show(write())
    say(f"the whole page: {directory / 'leaderboard.md'}")


def _chosen(board: "Board", settings: Sequence[str], methods: Sequence[str]) -> "Board":
    """The board with some of its settings and methods."""
    names, labels = [contest.name for contest in board.contests], list(board.contests[0].methods)
    for word in settings:
        if not any(word in name for name in names):
            raise InputError(f"the leaderboard has no setting {word!r}; {nearest(word, names)}")
    for word in methods:
        if word not in labels:
            raise InputError(f"the leaderboard has no method {word!r}; {nearest(word, labels)}")
    kept = [c for c in board.contests if not settings or any(word in c.name for word in settings)]
    if methods:
        kept = [replace(c, methods={label: c.methods[label] for label in labels if label in methods}) for c in kept]
    return replace(board, contests=kept)
