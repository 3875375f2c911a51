"""Tables and figures for notebooks."""

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from feddyn.errors import FeddynError
from feddyn.views.tables import Table, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rendered(tables: Sequence[Table], plot: "Callable[[], Figure] | None" = None) -> str:
    """Tables and, where matplotlib is there, a picture in one piece of HTML; no text of anybody's is markup in it."""
    parts = [_table(table) for table in tables]
    if plot is not None:
        try:
            stream = io.BytesIO()
            plot().savefig(stream, format="png", dpi=100)
            parts.append(
                f'<img alt="curves" src="data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}">'
            )
        except FeddynError as error:
            parts.append(f"<p>{escape(str(error))}</p>")
    return "\n".join(parts)


def _table(table: Table) -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    notes = "".join(f"<p>{_text(note)}</p>" for note in table.notes)
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f"<table><caption>{_text(table.title)}</caption>{body}</table>{notes}"


def _text(cell: str) -> str:
    return escape(visible(cell))
