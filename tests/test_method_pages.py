"""Every method has its page, whose lines of code are those of its file, and whose setting runs."""

import re
from collections import Counter
from pathlib import Path

import pytest
import torch

import feddyn
from feddyn.settings.names import METHODS
from tests.cli.test_run import call

ROOT = Path(__file__).parents[1]
PAGES = {method.algorithm.__name__.lower() for method in METHODS.values()}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_lines_of_code_are_those_of_the_file(name: str) -> None:
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    part = page.partition("## The equations, and our lines\n")[2].partition("\n## ")[0]
    cells = [row.rstrip(" |").rpartition(" | ")[2] for row in part.splitlines() if row.startswith("| ")][2:]
    source = (ROOT / "src" / "feddyn" / "algorithms" / f"{name}.py").read_text(encoding="utf-8")
    lines = {line.strip() for line in source.splitlines()}
    quoted = [line for cell in cells for line in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) >= 3
    assert set(quoted) <= lines
    figure = ROOT / "docs" / "methods" / "figures" / f"{name}.png"
    assert figure.stat().st_size < 60_000


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_setting_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "setting.toml").write_text(words)
    out = tmp_path / "run"
    asked = ("run", str(tmp_path / "setting.toml"), "--set", "rounds=2", "--workers", "1", "--out", str(out))
    assert call(*asked, monkeypatch=monkeypatch) == 0
    assert len(feddyn.load(out).history) == 2
    assert torch.isfinite(feddyn.load(out).models["server"]).all()


TOOK = re.compile(r"took ([\d.]+ \(\d+ settings?\)(?:, [\d.]+ \(\d+ settings?\))*)")


@pytest.mark.parametrize("name", sorted(PAGES - {"fedavg", "fedsplit", "scaffold"}))
def test_what_the_leaderboard_took_is_what_its_table_has(name: str) -> None:
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    (words,) = TOOK.findall(page)
    said = {value: int(count) for value, count in re.findall(r"([\d.]+) \((\d+)", words)}
    (row,) = [line for line in page.splitlines() if words in line]
    parameter = row.split("`")[1].split()[0]
    table = page.partition("<!-- results: standing")[2].partition("<!-- end")[0]
    rows = "\n".join(line for line in table.splitlines() if ", sharpness-aware" not in line)
    taken = Counter(re.findall(rf"\| (?:algorithm\.)?{parameter} ([\d.]+)", rows))
    assert {float(value): count for value, count in taken.items()} == {float(v): n for v, n in said.items()}
