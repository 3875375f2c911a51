"""Examples print what the texts say of them."""

import re
import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
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


def test_an_empty_draw_makes_the_next_devices_active_twice() -> None:
    """Draws of the seeds 0, 1, ... by hand: a round has its own draw or, where that is empty, that of the round after
    it; and 63% of the draws have anybody."""
    active = runpy.run_path(str(ROOT / "examples" / "drawn_again.py"))["schedule"](2000, 100, 0.01)
    for t in range(1999):
        np.random.seed(t)
        drawn = np.flatnonzero(np.random.uniform(size=100) <= 0.01).tolist()
        assert active[t] == (drawn or active[t + 1])
    changes = sum(one != other for one, other in pairwise(active))
    assert changes / 1999 == pytest.approx(1 - 0.99**100, abs=0.03)
