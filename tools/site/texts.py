"""A hook of MkDocs: the site is made of the texts as they stand in the repository, where links are paths.

README.md is the front page, and CONTRIBUTING.md, CHANGELOG.md and the short paper are pages. Any other file or folder
that a text links to and that is no page gets one that shows it, so that no link leaves the site.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "joss/paper.md": "short-paper.md",
}
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".toml": "toml", ".csv": "text", ".md": "markdown", ".sh": "bash", "": "text"}
SHOWN = "---\nsearch:\n  exclude: true\n---\n\n# {title}\n\n{body}\n"
FENCE = "~" * 8
"""Longer than any in a file that is shown."""


def on_config(config: MkDocsConfig) -> None:
    """Let patterns in the navigation stand for all texts that match."""
    if config.nav is not None:
        config.nav = list(_expanded(config.nav))


def _expanded(items: list[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, dict):
            yield {key: list(_expanded(value)) if isinstance(value, list) else value for key, value in item.items()}
        elif "*" in item:
            yield from sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob(item))
        else:
            yield item


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages from outside of docs/, and those that show a file or a folder."""
    for name, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    shown = {
        target for file in files.documentation_pages() for target in _targets(file) if _page(target, files) is None
    }
    for path in sorted(shown):
        content = SHOWN.format(title=_title(path), body=_listing(path) if path.is_dir() else _code(path))
        files.append(File.generated(config, _shown_at(path), content=content, inclusion=InclusionLevel.NOT_IN_NAV))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a text, which are paths in the repository, into links of the site."""

    def link(found: re.Match[str]) -> str:
        path, anchor = found[1], found[2] or ""
        if "://" in path or not (home := _home(page.file)):
            return found[0]
        target = (home / path).resolve()
        uri = _page(target, files) or _shown_at(target)
        return f"]({posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"

    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # of one entry; the room is better used for tables
    return LINK.sub(link, markdown)


def _home(file: File) -> Path | None:
    """The folder from which the links of a text are seen; None for a page that is made here."""
    if file.src_uri.startswith("notebooks/"):
        return DOCS / "notebooks"
    return Path(file.abs_src_path).parent if file.abs_src_path else None


def _targets(file: File) -> Iterator[Path]:
    """The files and folders that a text links to."""
    home = _home(file)
    for path, _ in LINK.findall(file.content_string) if home else ():
        if "://" not in path:
            yield (home / path).resolve()


def _page(target: Path, files: Files) -> str | None:
    """Where a file of the repository is in the site, if it is."""
    if found := next((uri for path, uri in PAGES.items() if target == ROOT / path), None):
        return found
    if not target.is_relative_to(DOCS):
        return None
    name = target.relative_to(DOCS).as_posix()
    file = files.get_file_from_path(name.replace(".ipynb", ".md"))
    return file.src_uri if file and file.inclusion is not InclusionLevel.EXCLUDED else None


def _shown_at(path: Path) -> str:
    return f"source/{path.relative_to(ROOT).as_posix()}.md"


def _title(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().replace("_", r"\_")


def _listing(folder: Path) -> str:
    return "\n".join(f"- `{path.name}{'/' * path.is_dir()}`" for path in sorted(folder.iterdir()))


def _code(path: Path) -> str:
    return f"{FENCE}{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}\n{FENCE}"
