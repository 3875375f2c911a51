"""Figures: what they draw."""

from pathlib import Path
from typing import Any

import pytest

from feddyn.records.layout import Status
from feddyn.records.reader import RunRecord
from feddyn.reports import curves
from feddyn.reports.records import Curve, Group


def record(alpha: float, accuracies: list[float]) -> RunRecord:
    history = [
        {"round": number, "models": {"all": {"accuracy": accuracy}}} for number, accuracy in enumerate(accuracies, 1)
    ]
    setting = {"algorithm": {"name": "feddyn", "alpha": alpha}}
    return RunRecord(Path(), "", setting, history, Status.INTERRUPTED, "", 1.0)


def test_an_own_metric_that_should_be_high_is_drawn_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of F1 as of accuracies; of an objective by magnitude. Both say which model they are of."""
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    monkeypatch.setattr(curves, "_save", lambda canvas, *_: drawn.append(canvas))
    own = {"evaluation": {"metrics": [{"name": "f1", "better": "higher"}]}}
    for metric, setting in (("f1", own), ("objective", {})):
        history = [{"round": number, "models": {"all": {metric: 0.1 * number}}} for number in (1, 2, 3)]
        one = RunRecord(Path(), "", setting, history, Status.FINISHED, "", 1.0)
        curves.curves_over_rounds(Group("g", [Curve("FedDyn", 0, one, "")], [0.25]), tmp_path, "f")
    assert [canvas.axes[0].get_yscale() for canvas in drawn] == ["linear", "log"]
    names = [canvas.axes[0].get_ylabel() for canvas in drawn]
    assert names == ["test f1 (mean of all devices)", "training objective (mean of all devices)"]
    assert all(canvas.axes[0].texts[0].get_text() == "target 0.25" for canvas in drawn)


def test_the_best_values_are_of_the_rounds_that_all_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second alpha has five rounds and is best in its last; after three, which all have, the first one is."""
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    monkeypatch.setattr(curves, "_save", lambda canvas, *_: drawn.append(canvas))
    runs = [record(0.1, [0.2, 0.3, 0.35, 0.5, 0.9]), record(0.01, [0.2, 0.4, 0.3])]
    curves.best_values(Group("alpha", [Curve("FedDyn", 0, run, "") for run in runs]), tmp_path, "best")
    (axes,) = drawn[0].axes
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0.01, 0.4], [0.1, 0.35]]
    assert axes.get_ylabel() == "best test accuracy in 3 rounds"
