"""A hook of MkDocs: joss/paper.md, which is written for a journal's tools, as a page of the site."""

import re
import unicodedata
from pathlib import Path
from typing import Any

from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
BIBLIOGRAPHY = ROOT / "joss" / "paper.bib"
ENTRY = re.compile(r"^@\w+\{([\w-]+),\n(.*?)^\}$", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"^  (\w+) *= \{(.*)\},?$", re.MULTILINE)
ACCENTED = re.compile(r"\{?\\(['\"`^~])\{?(\w)\}?\}?")
ACCENTS = {"'": "\u0301", '"': "\u0308", "`": "\u0300", "^": "\u0302", "~": "\u0303"}


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str | None:
    """Only that page; links to files are left to the hook for texts, which comes later."""
    if page.file.src_uri != "short-paper.md":
        return None
    title = page.meta["title"]
    page.meta = {"title": title}
    entries = {key: dict(FIELD.findall(fields)) for key, fields in ENTRY.findall(BIBLIOGRAPHY.read_text())}
    text = re.sub(r"^#", "##", markdown, flags=re.MULTILINE)
    text = re.sub(r"\[@([\w-]+)\]", lambda found: f"([{_short(entries[found[1]])}](#{found[1]}))", text)
    text = re.sub(r"!\[([^]]+)\]\(.+?\)", r"\g<0>\n\n*\1*", text)  # a caption stands below its figure
    text = re.sub(r"`((?:docs/[\w/-]+|README)\.md)`", lambda found: f"[{_title(found[1])}](../{found[1]})", text)
    return "\n\n".join([f"# {title}", text.strip(), *(_whole(key, fields) for key, fields in entries.items())])


def _title(path: str) -> str:
    """The heading of a text of the repository."""
    return "README" if path == "README.md" else (ROOT / path).read_text().splitlines()[0].removeprefix("# ")


def _plain(words: str) -> str:
    """Without LaTeX's accents and braces."""
    words = ACCENTED.sub(lambda found: unicodedata.normalize("NFC", found[2] + ACCENTS[found[1]]), words)
    return words.replace("{", "").replace("}", "").replace("--", "\u2013")


def _short(fields: dict[str, str]) -> str:
    names = [_plain(name).split(",")[0] for name in fields["author"].split(" and ")]
    who = names[0] if len(names) == 1 else f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{who}, {fields['year']}"


def _whole(key: str, fields: dict[str, str]) -> str:
    place = fields.get("booktitle") or fields.get("journal") or f"arXiv:{fields['eprint']}"
    link = f" <{fields['url']}>" if "url" in fields else ""
    names = _plain(fields["author"]).replace(" and ", "; ")
    return f'<a id="{key}"></a>{names} ({fields["year"]}). *{_plain(fields["title"])}*. {_plain(place)}.{link}'
