"""A hook of MkDocs: notebooks in docs/notebooks become pages, with what their cells showed when they were executed."""

import base64
import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
FENCE = "~" * 4


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page for every notebook, and its pictures beside it."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        pictures: list[bytes] = []
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join(_cell(cell, path.stem, pictures) for cell in cells)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for number, picture in enumerate(pictures):
            files.append(File.generated(config, f"notebooks/{path.stem}-{number}.png", content=picture))


def _cell(cell: dict[str, Any], stem: str, pictures: list[bytes]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([_fenced("python", source), *(_shown(output, stem, pictures) for output in cell["outputs"])])


def _shown(output: dict[str, Any], stem: str, pictures: list[bytes]) -> str:
    """What a cell showed: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        pictures.append(base64.b64decode(data["image/png"]))
        return f"![what the cell shows]({stem}-{len(pictures) - 1}.png)"
    if "text/html" in data:
        return "".join(data["text/html"])
    return _fenced("text", "".join(output.get("text", data.get("text/plain", ""))))


def _fenced(language: str, text: str) -> str:
    return f"{FENCE}{language}\n{text.rstrip()}\n{FENCE}"
