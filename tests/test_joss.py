"""The short paper about the package: its figures stand in the pages that it names, and every citation has its entry."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "joss/paper.md").read_text()
BIBLIOGRAPHY = (ROOT / "joss/paper.bib").read_text()
HEAD, BODY = re.fullmatch(r"---\n(.*?)\n---\n(.*)", PAPER, re.DOTALL).groups()  # type: ignore[union-attr]
SECTIONS = dict(re.findall(r"^# ([^\n]+)\n(.*?)(?=^# |\Z)", BODY, re.DOTALL | re.MULTILINE))
PAGE = re.compile(r"`((?:docs/[\w/-]+|README)\.md)`")
NUMBER = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?(?![\w]|\.\d)")
UNREAD = re.compile(r"`[^`]*`|\[@[^]]*\]|\$\$?.*?\$\$?", re.DOTALL)
"""Code, citations and mathematics have numbers that are no figures."""
MEASURED = re.compile(r"docs/results/.+|docs/benchmark\.md|README\.md")


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(UNREAD.sub(" ", text)))


def missing(paragraph: str) -> set[str]:
    """The figures of a paragraph that stand in no page that it names."""
    pages = [(ROOT / page).read_text() for page in PAGE.findall(paragraph)]
    return numbers(paragraph).difference(*(NUMBER.findall(page) for page in pages))


def paragraphs(section: str) -> list[str]:
    """Without tables, which have a test of their own."""
    return [words for words in SECTIONS[section].split("\n\n") if words.strip() and not words.startswith("|")]


def compressed() -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """Of a method and a compressor, in the order of split and seed: megabytes, and parts of FedDyn's and FedAvg's."""
    row = re.compile(r"^\| (.+), [01] \| (\w+) \| (.+?) \| \d+ \| .+ \| .+ \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for _, method, by, *figures in row.findall((ROOT / "docs/results/compression.md").read_text()):
        found.setdefault((method, by), []).append((figures[0], figures[1], figures[2]))
    return found


@pytest.mark.parametrize("section", SECTIONS)
def test_figures_stand_in_the_pages_that_their_paragraph_names(section: str) -> None:
    for paragraph in paragraphs(section):
        assert not missing(paragraph), paragraph
        if section == "Measurements":
            assert all(MEASURED.fullmatch(page) for page in PAGE.findall(paragraph)), paragraph


def test_a_figure_that_nobody_measured_is_noticed() -> None:
    assert missing("It takes 43.5 MB and 43.4 MB (`docs/results/compression.md`).") == {"43.4"}
    assert missing("It takes 43.5 MB.") == {"43.5"}
    text = "CIFAR-10, `a 1`, [@b2021], $1/2$: 4.7 ms, 1,000, 8e-7, 20%; 3."
    assert numbers(text) == {"4.7", "1,000", "8e-7", "20", "3"}


def test_the_table_of_compression_is_that_of_the_results() -> None:
    rows = re.findall(r"^\| (Fed\w+), (.+?) \| (.+) \| (.+) \|$", SECTIONS["Measurements"], re.MULTILINE)
    assert len(rows) == 5
    for method, by, *shown in rows:
        assert ", ".join(shown).split(", ") == [megabytes for megabytes, _, _ in compressed()[method, by]], (method, by)


@pytest.mark.parametrize("by", ["4 bits, step 2", "top 10% of 4 bits"])
def test_ranges_of_compression_are_those_of_the_results(by: str) -> None:
    words = " ".join(SECTIONS["Measurements"].split())
    found = re.search(rf"with {by}\D*([\d.]+) to ([\d.]+)\D+([\d.]+) to ([\d.]+) times", words)
    assert found
    _, of_feddyn, of_fedavg = zip(*compressed()["FedDyn", by], strict=True)
    ends = [end(parts, key=float) for parts in (of_feddyn, of_fedavg) for end in (min, max)]
    assert list(found.groups()) == ends


def test_leaders_are_those_of_the_leaderboard() -> None:
    page = (ROOT / "docs/results/leaderboard.md").read_text()
    row = re.compile(r"^\| (synthetic|MNIST), .+? \| (Fed\w+|AdaBest) \| (.+) \| (.+) \| 3 \|$", re.MULTILINE)
    rows = row.findall(page)
    assert [leader for data, leader, *_ in rows if data == "synthetic"] == ["FedDyn"]
    behind = [how.split(" ± ") for data, *_, how in rows if data == "MNIST"]
    assert Counter(leader for data, leader, *_ in rows if data == "MNIST") == {"FedACG": 3, "AdaBest": 3}
    assert sum(float(mean) > float(half) for mean, half in behind) == 3
    words = " ".join(SECTIONS["Measurements"].split())
    assert f"{' ± '.join(min(behind))} to {' ± '.join(max(behind))} in accuracy" in words


def test_references_are_cited_and_citations_have_references() -> None:
    entries = re.findall(r"^@\w+\{([\w-]+),$", BIBLIOGRAPHY, re.MULTILINE)
    assert len(entries) == len(set(entries)) == BIBLIOGRAPHY.count("@")
    assert set(re.findall(r"@([\w-]+)", BODY)) == set(entries)
    for entry in BIBLIOGRAPHY.split("\n\n"):
        assert all(re.search(rf"^  {field} +=", entry, re.MULTILINE) for field in ("title", "author", "year")), entry


def test_pages_that_are_named_are_there() -> None:
    assert all((ROOT / page).exists() for page in PAGE.findall(BODY))


def test_the_head_is_what_the_journal_asks_for() -> None:
    keys = re.findall(r"^(\w+):", HEAD, re.MULTILINE)
    assert keys == ["title", "tags", "authors", "affiliations", "date", "bibliography"]
    citation = (ROOT / "CITATION.cff").read_text().split("preferred-citation")[0]
    for pattern in (r"^title: (.+)$", r"^  - name: (.+ authors)$"):
        assert re.findall(pattern, HEAD, re.MULTILINE) == re.findall(pattern, citation, re.MULTILINE)
    assert {"Summary", "Statement of need", "References"} <= set(SECTIONS)
    assert 750 <= len(re.sub(r"^\|.*$", "", BODY, flags=re.MULTILINE).split()) <= 1750  # its limits
