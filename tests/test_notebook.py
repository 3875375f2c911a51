"""The notebook, from top to bottom in a new kernel: it shows what its cells give, but for times and the last digits.

`make notebook` (this file as a program) executes it and keeps the outputs.
"""

import re
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.pages import alike, lines
from tests.test_docs import LINK

FILE = Path(__file__).parents[1] / "docs" / "notebooks" / "feddyn-in-15-minutes.ipynb"
LARGEST = 600_000
"""Bytes of the file."""


def executed(folder: Path) -> Any:
    """The notebook with the outputs of all cells; without what differs each time, and without words beside pictures."""
    notebook = nbformat.read(FILE, as_version=4)
    place = {"metadata": {"path": folder}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place, coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if {"text/html", "image/png"} & set(output.get("data", {})):
                output.data.pop("text/plain", None)
    return notebook


def words(cell: Any) -> list[str]:
    """The text that a cell shows, line by line: also that of tables, but not of pictures."""
    found = []
    for output in cell.outputs:
        data = output.get("data", {})
        rows = re.sub(r"</tr>|</p>|</text>", "\n", data.get("text/html", ""))
        found += [output.get("text", ""), data.get("text/plain", ""), unescape(re.sub(r"<[^>]*>", " ", rows))]
    return [line for text in found for line in lines(text)]


def test_every_cell_shows_what_it_gives(tmp_path: Path) -> None:
    shown, given = nbformat.read(FILE, as_version=4), executed(tmp_path)
    for old, new in zip(shown.cells, given.cells, strict=True):
        if old.cell_type == "code":
            assert len(words(old)) == len(words(new)), new.source
            for one, other in zip(words(old), words(new), strict=True):
                assert alike(one, other), f"{one!r} is shown, {other!r} is given by:\n{new.source}"
            assert [sorted(o.get("data", {})) for o in old.outputs] == [sorted(o.get("data", {})) for o in new.outputs]


def test_it_is_small_has_run_in_order_and_points_to_what_is_there() -> None:
    notebook = nbformat.read(FILE, as_version=4)
    assert FILE.stat().st_size < LARGEST
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    links = [link for cell in notebook.cells for link in LINK.findall(cell.source) if cell.cell_type == "markdown"]
    for link in (link for link in links if "://" not in link):
        assert (FILE.parent / link).exists(), link
    assert len(links) > 6


def test_what_it_claims_is_so() -> None:
    """As it is committed: a claim that failed would otherwise be compared with itself."""
    cells = [cell for cell in nbformat.read(FILE, as_version=4).cells if cell.cell_type == "code"]
    text = [line for cell in cells for line in words(cell)]
    assert len([line for line in text if line.endswith(": True")]) == 3
    assert not [line for line in text if "False" in line]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        nbformat.write(executed(Path(place)), FILE)
