"""What the texts point to is there: files, anchors, commands, make targets and names of the package."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import feddyn
from tests.conftest import SLOW

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TEXTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
OURS = re.compile(r"`((?:src|tests|docs|examples|benchmarks|\.ci)/[\w./-]+)`")
MAKE = re.compile(r"(?:^\$ |`)make ([a-z-]+)", re.MULTILINE)
NAME = re.compile(r"\bfeddyn\.([A-Z]\w+)")
OLD = "CHANGELOG.md"
"""Speaks of names that are gone."""


def _headings(text: str) -> set[str]:
    """The headings of a Markdown text as links name them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("text", TEXTS, ids=[str(text.relative_to(ROOT)) for text in TEXTS])
def test_what_a_text_points_to_is_there(text: Path) -> None:
    words = text.read_text()
    for link in LINK.findall(words):
        if "://" not in link:
            file, _, heading = link.partition("#")
            target = text.parent / file if file else text
            assert target.exists(), link
            assert not heading or heading in _headings(target.read_text()), link
    for path in OURS.findall(words):
        assert "NAME" in path or (ROOT / path).exists(), path
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(MAKE.findall(words)) <= set(targets)
    if text.name != OLD:
        assert {name for name in NAME.findall(words) if name != "NAME"} <= set(feddyn.__all__)


def test_dotted_names_can_be_written_as_they_stand() -> None:
    """After `import feddyn` alone: in a process of its own, where nothing else has imported them."""
    words = "\n".join(text.read_text() for text in TEXTS if text.name != OLD)
    names = sorted(set(re.findall(r"\b(feddyn\.(?:data|models)(?:\.\w+)*\.\w+)", words)))
    assert "feddyn.models.group_norm" in names
    subprocess.run([sys.executable, "-c", f"import feddyn\n({', '.join(names)})"], check=True)


def test_every_text_in_docs_can_be_found() -> None:
    """From README.md or in the site's navigation, where a pattern stands for many; the site's own test knows more."""
    readme, site = (ROOT / "README.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    shown = {path for item in re.findall(r"- (?:.*: )?([\w/*-]+\.md)$", site, re.MULTILINE) for path in DOCS.glob(item)}
    for text in DOCS.rglob("*.md"):
        assert f"docs/{text.relative_to(DOCS)}" in readme or text in shown, text


@pytest.mark.parametrize("slow", SLOW)
def test_slow_tests_exist(slow: str) -> None:
    name, _, function = slow.partition("::")
    file = ROOT / "tests" / name
    assert file.exists()
    assert not function or f"def {function}(" in file.read_text()


DOCTESTS = sorted(path for path in (ROOT / "src" / "feddyn").rglob("*.py") if ">>> " in path.read_text())


@pytest.mark.parametrize("path", DOCTESTS, ids=lambda path: path.stem)
def test_examples_in_docstrings_give_what_they_say(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed
