"""Tables and progress on a terminal, and as plain lines without control characters elsewhere."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from feddyn.records.files import home
from feddyn.views.progress import Report
from feddyn.views.progress import progress as shown
from feddyn.views.tables import Table, visible

UNSEEN = 160
"""The width of what nobody looks at on a terminal."""


class Place(click.Path):
    """A path, in which a leading ~ is the home directory, as in --out=~/runs, which shells leave as it is."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Path:
        return home(Path(value))


def say(line: str, err: bool = False) -> None:
    """Print a line. Paths, labels and names in it may be anybody's: no character of theirs moves the cursor."""
    click.echo(visible(line), err=err)


def leads() -> bool:
    """Whether this process speaks and writes: under torchrun, only the first one does."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def progress(unit: str) -> Iterator[Report]:
    """Shows progress, of the first rank: a function (label, done, total, figure)."""
    if not leads():
        yield lambda *_, **__: None
        return
    with shown(unit, say) as report:
        yield report


def download_bar() -> Any:
    """A progress bar for pooch, on a terminal."""
    from rich.progress import Progress

    if not sys.stdout.isatty():
        return None

    class Bar:
        """What pooch asks of a progress bar."""

        def __init__(self) -> None:
            self.progress = Progress()
            self.task = self.progress.add_task("download")

        @property
        def total(self) -> float | None:
            return self.progress.tasks[0].total

        @total.setter
        def total(self, value: float) -> None:
            self.progress.start()
            self.progress.update(self.task, total=value)

        def update(self, done: float) -> None:
            self.progress.advance(self.task, done)

        def reset(self) -> None:
            self.progress.reset(self.task)

        def close(self) -> None:
            self.progress.stop()

    return Bar()


def new(parent: Path, name: str) -> Path:
    """A directory that does not exist: of this name, numbered if the name is taken."""
    directory, number = parent / name, 1
    while directory.exists():
        number += 1
        directory = parent / f"{name}-{number}"
    return directory


def show(table: Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else UNSEEN)
    frame = box.SIMPLE_HEAD if console.is_terminal else box.ASCII
    console.print(Text(visible(table.title), style="italic"), soft_wrap=True)  # not folded to the width of the table
    shown = RichTable(box=frame)
    for column, width in zip(table.columns, _widths(table, _room(table, console.width)), strict=True):
        shown.add_column(visible(column), overflow="fold", width=width)
    for row in table.rows:
        shown.add_row(*map(visible, row))
    console.print(shown, markup=False)
    for note in table.notes:
        console.print(visible(note), markup=False, highlight=False)


def fits(table: Table) -> bool:
    """Whether no word of a table has to be broken where it is shown."""
    from rich.console import Console

    width = Console().width if sys.stdout.isatty() else UNSEEN
    return sum(least for least, _ in _needs(table)) <= _room(table, width)


def _room(table: Table, width: int) -> int:
    """What frames leave of the width."""
    return width - 3 * len(table.columns) - 1


def _needs(table: Table) -> list[tuple[int, int]]:
    """For every column the length of its longest word, and of its longest cell."""
    from rich.cells import cell_len

    needs = []
    for number, column in enumerate(table.columns):
        cells = [visible(column), *(visible(row[number]) for row in table.rows)]
        needs.append(
            (max(cell_len(word) for cell in cells for word in cell.split() or [""]), max(map(cell_len, cells)))
        )
    return needs


def _widths(table: Table, room: int) -> list[int | None]:
    """Widths of columns at which no word is broken, where there is room for that; else it is left to the table."""
    needs = _needs(table)
    if sum(least for least, _ in needs) > room:
        return [None] * len(needs)
    widths = [most for _, most in needs]
    while sum(widths) > room:  # the widest one that can be folded is
        widths[max((width, n) for n, width in enumerate(widths) if width > needs[n][0])[1]] -= 1
    return [*widths]
