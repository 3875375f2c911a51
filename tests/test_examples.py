"""Examples print what the texts say of them."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_adapters_send_a_small_part(capsys: pytest.CaptureFixture[str]) -> None:
    """Two attention layers with two adapters of 2 (64 + 64) numbers each, and a head of 64 x 4 + 4, in float64; the
    accuracies depend on the processor a little, the bytes do not."""
    runpy.run_path(str(ROOT / "examples" / "lora.py"))
    line = r"(.*): ([\d,]+) trained, ([\d.]+) kB up from a device a round, accuracy ([\d.]+)%"
    shown = re.findall(line, (ROOT / "docs" / "own.md").read_text())
    found = re.findall(line, capsys.readouterr().out)
    assert [words[:3] for words in found] == [words[:3] for words in shown]
    assert found[1][1] == f"{2 * 2 * 2 * (64 + 64) + 64 * 4 + 4:,}"
    for (*_, accuracy), (*_, written) in zip(found, shown, strict=True):
        assert float(accuracy) == pytest.approx(float(written), abs=5)
