"""The short paper: its figures are those of the cells that they come from, and it has what the journal asks for.

Where a measured figure is not that of the pages, `make results` writes it anew.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import short_paper

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "joss/paper.md").read_text()
BIBLIOGRAPHY = (ROOT / "joss/paper.bib").read_text()
HEAD, BODY = re.fullmatch(r"---\n(.*?)\n---\n(.*)", PAPER, re.DOTALL).groups()  # type: ignore[union-attr]
SECTIONS = dict(re.findall(r"^# ([^\n]+)\n(.*?)(?=^# |\Z)", BODY, re.DOTALL | re.MULTILINE))
MADE = {
    name: " ".join(text.split())
    for name, text in re.findall(r"<!-- results: paper (\w+) -->(.*?)<!-- end of results -->", BODY, re.DOTALL)
}
"""The parts that `make results` writes."""
PAGE = re.compile(r"`((?:docs/[\w/-]+|README)\.md)`")
NUMBER = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?(?![\w]|\.\d)")
UNREAD = re.compile(r"`[^`]*`|\[@[^]]*\]|\$\$?.*?\$\$?", re.DOTALL)
"""Code, citations and mathematics have numbers that are no figures."""


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def cells(text: str) -> dict[str, list[str]]:
    """The rows of all tables, by their first two cells."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {" ".join(row[:2]): row[2:] for row in rows if len(row) > 2}


def holds(name: str, sentence: str) -> None:
    assert sentence in MADE[name], f"{name}: the page gives {sentence!r}: `make results` renews it in joss/paper.md"


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(UNREAD.sub(" ", text)))


def missing(paragraph: str) -> set[str]:
    """The figures of a paragraph that stand in no page that it names."""
    pages = [(ROOT / page).read_text() for page in PAGE.findall(paragraph)]
    return numbers(paragraph).difference(*(NUMBER.findall(page) for page in pages))


def test_counts_of_the_tables_are_those_of_their_rows() -> None:
    found = cells(page("results/tables.md"))
    reached, _, within, *_ = found["all, each once 100"]
    holds("tables", f"Of 100 rows, FedDyn reached its target in {reached};")
    holds("tables", f"In {within} of the {reached}, the paper's count for FedDyn lies within")
    feddyn, paper, scaffold, scaffolds, fedavg, fedavgs, *_ = found["mnist-dirichlet0.3-10 97.2"]
    for label, ours, theirs in (("FedDyn transmits", feddyn, paper), ("FedAvg", fedavg, fedavgs)):
        holds("tables", f"{label} {ours.split(' (')[0]} models (seeds: 3; paper: {theirs.split()[0]})")
    holds("tables", f"SCAFFOLD {scaffold.split(' (')[0]} models (seeds: 1; paper: {scaffolds.split()[0]})")
    *_, can, same = found["participation-1pct 28"]
    holds("tables", f"in the paper's order in {same} of the {can} rows")


def test_counts_with_one_percent_are_those_of_their_column() -> None:
    """Of targets that FedDyn reached: where the paper's count is marked as far outside, above or below ours."""
    text = page("results/tables.md").split("**1% participation")[1].split("**balanced")[0]
    ours = re.compile(r"([\d.]+)(?: ± [\d.]+ \(\d+ to \d+\))?(\*?)")  # of one seed, or the mean of several
    pairs = [(found, int(row[1])) for row in cells(text).values() if (found := ours.fullmatch(row[0]))]
    below = sum(found[2] == "*" and float(found[1]) < theirs for found, theirs in pairs)
    level = sum(not found[2] for found, _ in pairs)
    holds("tables", f"FedDyn reached {len(pairs)} targets: its count is more than 20% below the paper's in {below}")
    holds("tables", f"and within that range in {level};")


def test_what_compression_saves_is_what_its_page_says() -> None:
    assert short_paper.compression(page("results/compression.md")).split() == MADE["compression"].split()
    found = cells(page("results/compression.md"))
    shown = [found[f"{split}, {seed} FedDyn"][4] for split in ("Dirichlet 0.3", "IID") for seed in (0, 1)]
    holds("compression", "| FedDyn, top 10% of 4 bits | {}, {} | {}, {} |".format(*shown))


def test_leaders_are_those_of_the_leaderboard() -> None:
    text = page("results/leaderboard.md").split("<!-- results: winners leaderboard -->")[1].split("<!-- end")[0]
    rows = re.findall(r"^\| ([\w-]+), .+? \| (.+?) \| .+ \| (.+) \| (\d+) \|$", text, re.MULTILINE)
    cells = [(leader, how.split(" ± ")) for data, leader, how, _ in rows if data == "MNIST" and how != "leads"]
    behind = sorted(([leader, float(mean), float(half)] for leader, (mean, half) in cells), key=lambda row: row[1])
    for leader, count in Counter(leader for leader, *_ in behind).items():
        holds("leaderboard", f"{leader} leads in {count}")
    (_, *least), (_, *most) = behind[0], behind[-1]
    holds("leaderboard", "behind by {:.4f} ± {:.4f} to {:.4f} ± {:.4f}".format(*least, *most))
    holds("leaderboard", f"the 95% interval excludes a tie in {sum(mean > half for _, mean, half in behind)}")
    seeds = sorted({int(seeds) for *_, seeds in rows})
    holds("leaderboard", f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else f"{seeds[0]} seeds")


def test_seconds_are_those_of_the_benchmark() -> None:
    assert short_paper.speed(page("benchmark.md")).split() == MADE["speed"].split()
    found = cells(page("benchmark.md"))
    theirs, ours, _ = found["mlp bare loop, 2 processes"]
    holds("speed", f"an MLP takes {ours}; a plain PyTorch loop in 2 processes takes {theirs},")


@pytest.mark.parametrize("section", SECTIONS)
def test_figures_stand_in_the_pages_that_their_paragraph_names(section: str) -> None:
    """Of what is written by hand; captions and tables have none that is measured."""
    text = re.sub(r"<!-- results: .*?<!-- end of results -->|!\[.*?\)", "", SECTIONS[section], flags=re.DOTALL)
    for paragraph in text.split("\n\n"):
        assert not missing(paragraph), paragraph


def test_a_figure_that_nobody_measured_is_noticed() -> None:
    assert missing("It takes 43.5 MB and 43.4 MB (`docs/results/compression.md`).") == {"43.4"}
    assert missing("It takes 43.5 MB.") == {"43.5"}
    text = "CIFAR-10, `a 1`, [@b2021], $1/2$: 4.7 ms, 1,000, 8e-7, 20%; 3."
    assert numbers(text) == {"4.7", "1,000", "8e-7", "20", "3"}
    with pytest.raises(AssertionError, match="the page gives 'reached its target in 999': `make results` renews it"):
        holds("tables", "reached its target in 999")


def test_references_are_cited_and_citations_have_references() -> None:
    entries = re.findall(r"^@\w+\{([\w-]+),$", BIBLIOGRAPHY, re.MULTILINE)
    assert len(entries) == len(set(entries)) == BIBLIOGRAPHY.count("@")
    assert set(re.findall(r"@([\w-]+)", BODY)) == set(entries)
    for entry in BIBLIOGRAPHY.split("\n\n"):
        assert all(re.search(rf"^  {field} +=", entry, re.MULTILINE) for field in ("title", "author", "year")), entry


def test_pages_and_pictures_that_are_named_are_there() -> None:
    assert all((ROOT / page).exists() for page in PAGE.findall(BODY))
    pictures = re.findall(r"!\[[^]]{40,}\]\((.+?)\)", BODY)
    assert pictures
    assert all((ROOT / "joss" / picture).exists() for picture in pictures)


def test_head_and_sections_are_what_the_journal_asks_for() -> None:
    keys = re.findall(r"^(\w+):", HEAD, re.MULTILINE)
    assert keys == ["title", "tags", "authors", "affiliations", "date", "bibliography"]
    citation = (ROOT / "CITATION.cff").read_text().split("preferred-citation")[0]
    for pattern in (r"^title: (.+)$", r"^  - name: (.+ developers)$"):
        assert re.findall(pattern, HEAD, re.MULTILINE) == re.findall(pattern, citation, re.MULTILINE) != []
    first = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement"]
    assert list(SECTIONS) == [*first, "AI usage disclosure", "Acknowledgements", "References"]
    assert all(text.strip() for name, text in SECTIONS.items() if name != "References")
    assert 750 <= len(re.sub(r"^\|.*$|<!--.*?-->", "", BODY, flags=re.MULTILINE).split()) <= 1750  # its limits
