"""The tutorial and the how-tos, command by command: what they show is what is printed."""

import json
import re
from pathlib import Path
from statistics import fmean

import pytest

from tests.pages import ROOT, compared, follow, steps

TEXTS = {
    path.stem: path.read_text() for path in (ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md")))
}
PAGES = [page for page, text in TEXTS.items() if "```console" in text]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_printed(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follow(TEXTS[page], tmp_path, monkeypatch, capsys)


def test_what_is_not_printed_is_noticed() -> None:
    """The machinery itself: another number, another word, a missing line, and one too many."""
    compared("...\n| FedDyn | 24 |\n", "round 1\n+---+\n| FedDyn   | 24.1 |\n")
    for printed in ("| FedDyn | 27 |", "| FedAvg | 24 |", "", "| FedDyn | 24 |\n| FedAvg | 48 |"):
        with pytest.raises(AssertionError):
            compared("| FedDyn | 24 |\n", printed)


def test_steps_of_a_page() -> None:
    program = "```python\nprint(1)\n```\n\n```\n1\n```\n"
    text = f"```toml\n# a.toml\nx = 1\n```\n\n{program}\n```console\n$ ls\na.toml\n$ cd b\n```\n"
    kinds = [("file", "# a.toml\nx = 1\n", "a.toml"), ("python", "print(1)\n", "1\n")]
    assert list(steps(text)) == [*kinds, ("shell", "ls", "a.toml\n"), ("shell", "cd b", "")]


def test_figures_of_server_and_all_are_those_of_the_records() -> None:
    row = re.compile(r"^\| `(mnist-\S+)` \| (\d+) to (\d+) \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
    found = row.findall(TEXTS["which-model"])
    assert len(found) == 8
    for name, first, last, ever, *shown in found:
        (record,) = (ROOT / "docs/results/records").glob(f"{name}-*/rounds.jsonl")
        rounds = [json.loads(line) for line in record.read_text().splitlines()[: int(last)]]
        assert len({device for line in rounds for device in line["active"]}) == int(ever)
        for model, words in zip(("server", "all"), shown, strict=True):
            values = [100 * line["models"][model]["accuracy"] for line in rounds[int(first) - 1 :]]
            assert words == f"{fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})", (name, model)
