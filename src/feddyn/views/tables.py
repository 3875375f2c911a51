"""Tables, how they are shown and saved, and how numbers, times and sizes are written in them."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feddyn.errors import InputError

FORMULA = "=+-@"
"""What a spreadsheet takes for the beginning of a formula."""


@dataclass(frozen=True)
class Table:
    """A title, columns and rows of text, and notes below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [f"**{visible(self.title)}**", "", _row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row(row) for row in self.rows]
        return "\n".join([*lines, *(f"\n{visible(note)}" for note in self.notes)]) + "\n"

    def csv(self) -> str:
        """The table as CSV, in which a spreadsheet finds no formulas."""
        text = io.StringIO()
        rows = ([_quoted(cell) for cell in row] for row in (self.columns, *self.rows))
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue()

    @classmethod
    def load(cls, path: Path, title: str) -> "Table":
        """A CSV file as a table again."""
        try:
            with path.open(newline="", encoding="utf-8") as stream:
                columns, *rows = [[_unquoted(cell) for cell in row] for row in csv.reader(stream, strict=True)] or [[]]
        except (OSError, ValueError, csv.Error) as error:
            raise InputError(f"the table {path} is damaged: {error}") from None
        if not columns or any(len(row) != len(columns) for row in rows):
            raise InputError(f"the table {path} is damaged: its rows have not all as many cells as its head")
        return cls(title, columns, rows)

    def save(self, directory: Path, stem: str) -> list[Path]:
        """Write the table as Markdown, CSV and LaTeX; files of an earlier table are replaced."""
        directory.mkdir(parents=True, exist_ok=True)
        files = {directory / f"{stem}.{suffix}": text for suffix, text in self._forms().items()}
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        return list(files)

    def without(self, column: str) -> "Table":
        """The same table without a column."""
        at = list(self.columns).index(column)
        columns, *rows = ([*row[:at], *row[at + 1 :]] for row in (self.columns, *self.rows))
        return replace(self, columns=columns, rows=rows)

    def first(self, most: int, files: Path) -> "Table":
        """The first rows, and how many more there are in which files."""
        left = len(self.rows) - most
        if left <= 0:
            return self
        note = f"{left} more {'row' if left == 1 else 'rows'} in {files}."
        return replace(self, rows=self.rows[:most], notes=[note, *self.notes])

    def text(self) -> str:
        """The table in plain text, its columns aligned."""
        rows = [[visible(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([visible(self.title), *lines, *map(visible, self.notes)])

    def _forms(self) -> dict[str, str]:
        return {"md": self.markdown(), "csv": self.csv(), "tex": self.latex()}

    def latex(self) -> str:
        """The table in LaTeX."""
        lines = [r"\begin{table}", rf"\caption{{{_latex(self.title)}}}", r"\centering", r"\small"]
        lines += [rf"\begin{{tabular}}{{|{'c|' * len(self.columns)}}}", r"\hline"]
        for row in (self.columns, *self.rows):
            lines.append(" & ".join(map(_latex, row)) + r" \\ \hline")
        lines += [r"\end{tabular}", *(rf"\par {_latex(note)}" for note in self.notes), r"\end{table}"]
        return "\n".join(lines) + "\n"


def visible(text: str) -> str:
    r"""Text of anybody's with the characters that nobody sees written out: what moves a terminal's cursor, turns the
    writing around, ends a line or is no character at all.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def duration(seconds: float) -> str:
    """A time to be read.

    >>> duration(5400), duration(90), duration(3.2)
    ('1 h 30 min', '2 min', '3 s')
    """
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60:,} h {minutes % 60} min"
    return f"{minutes} min" if round(seconds) >= 60 else f"{seconds:.0f} s"


def figure(value: float) -> str:
    """A figure to be read.

    >>> figure(0.97214), figure(0.0000123), figure(math.nan)
    ('0.9721', '1.23e-05', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.3g}"


BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 20) -> str:
    """A curve in one line of text; of many values, as many as there is room for.

    >>> sparkline([0.0, 0.5, 1.0])
    '▁▅█'
    """
    step = max(1.0, (len(values) - 1) / (width - 1))
    chosen = [values[round(place * step)] for place in range(min(len(values), width))]
    low, high = min(chosen, default=0.0), max(chosen, default=0.0)
    if high == low:
        return BARS[0] * len(chosen)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in chosen)


def transmitted(models: int | None, limit: int) -> str:
    """A count of models, or the limit with a plus where the target was not reached, as the paper writes it."""
    return f"{limit}+" if models is None else str(models)


def savings(models: int | None, limit: int, reference: int | None) -> str:
    """How many times as much as a reference was transmitted, e.g. '2.9x', or '>1.5x' where it never got there; a dash
    where that cannot be told: without a reference, or where it stopped before it had transmitted as much.

    >>> savings(29, 40, 10), savings(None, 1000, 637), savings(None, 8, 10)
    ('2.9x', '>1.5x', '-')
    """
    if reference is None or (models is None and limit <= reference):
        return "-"
    return factor(models / reference) if models is not None else beyond(limit, reference)


def beyond(limit: float, reference: float) -> str:
    """How many times as much at least, of which no more is said than is known: digits are cut off, not rounded.

    >>> beyond(59, 55)
    '>1.0x'
    """
    return f">{math.floor(10 * limit / reference) / 10:.1f}x"


def factor(ratio: float) -> str:
    """A ratio to be read.

    >>> factor(2.94), factor(0.0123)
    ('2.9x', '0.012x')
    """
    return f"{ratio:.1f}x" if ratio >= 0.1 else f"{ratio:.2g}x"


def comparison(
    title: str, runs: Mapping[str, Mapping[str, Any]], reference: str, *, model: str, metric: str, target: bool
) -> Table:
    """A row a method from the summaries of the runs: counts at the target beside the reference's; without a target
    there is nothing to save, and the counts are those at the end."""
    first = runs[reference]["reached"]
    base = None if first is None else first["transmitted"]
    columns = ["method", "models transmitted", f"vs {reference}", "rounds", "sent up", "sent down"]
    rows = []
    for label, summary in runs.items():
        reached, last = summary["reached"], summary["last"]
        if summary["status"] == "diverged":
            rows.append([label, "diverged", "-", str(last["round"] if last else 0), "-", "-", "-"])
            continue
        at = reached or last
        models = at["transmitted"] if reached or not target else None
        sent = [f"{volume(at[side])}{'+' if models is None else ''}" for side in ("bytes_up", "bytes_down")]
        limit = last["transmitted"]
        end = f"{last['models'][model][metric]:.4f}"
        rows.append([label, transmitted(models, limit), savings(models, limit, base), str(at["round"]), *sent, end])
    table = Table(title, [*columns, f"{metric} at the end"], rows)
    return table if target else table.without(f"vs {reference}")


def volume(count: int) -> str:
    """A number of bytes to be read.

    >>> volume(1500), volume(7)
    ('1.5 kB', '7 B')
    """
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.4g} {unit}"
        amount /= 1000
    return f"{amount:.4g} TB"


_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {character: f"\\{character}" for character in "&%$#_{}"}
_SPECIAL |= {"<": "$<$", ">": "$>$", "±": r"$\pm$"}


def _latex(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in visible(text))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(visible(cell).replace("|", "\\|") for cell in cells) + " |"


def _quoted(cell: str) -> str:
    """A text that looks like a formula behind an apostrophe, which makes it a text; a dash alone is none."""
    try:
        float(cell)
    except ValueError:
        return f"'{visible(cell)}" if cell[:1] in tuple(FORMULA) and cell != "-" else visible(cell)
    return visible(cell)


def _unquoted(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] in tuple(FORMULA) else cell
