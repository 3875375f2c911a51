"""Progress: when a line is written, how long the rest takes, and what a notebook shows."""

import sys
import types
from collections.abc import Sequence
from typing import Any

import pytest

from feddyn.views import progress as shown
from feddyn.views.progress import Pace, figure, plain


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def told(steps: Sequence[tuple[float, int]], total: int, **more: Any) -> list[str]:
    """The lines about something of which so much is done after so many seconds."""
    clock, lines = Clock(), list[str]()
    report = plain("round", lines.append, clock)
    for seconds, done in steps:
        clock.now = 100.0 + seconds
        report("FedDyn", done, total, "loss 1", **more)
    return lines


def test_the_time_that_is_left_is_honest_from_the_first_round_on() -> None:
    """Ten seconds a round: after the first, 99 rounds are 990 s, 16.5 minutes."""
    assert told([(10, 1)], 100) == ["FedDyn: round 1 of 100, loss 1, 16 min left"]
    assert told([(10, 1)], 100, at_most=True) == ["FedDyn: round 1 of 100, loss 1, at most 16 min left"]


def test_rounds_that_were_there_before_do_not_count() -> None:
    """A run that goes on after round 50, in ten seconds a round."""
    assert told([(10, 51)], 100) == ["FedDyn: round 51 of 100, loss 1, 8 min left"]


def test_what_comes_second_has_a_pace_of_its_own() -> None:
    """The first took 1 s a round; the first round of the second takes 20 s, and nine more 180 s."""
    clock = Clock()
    pace = Pace(clock)
    for done in range(1, 11):
        clock.now += 1
        words = pace.words("one", done, 10, False)
    assert words == "10 s"
    clock.now += 20
    assert pace.words("two", 1, 10, False) == "3 min left"


def test_a_line_a_minute_or_for_every_tenth() -> None:
    """Rounds of 7 s: a line for the first, then after 63 s each; 10% of a thousand rounds take longer."""
    lines = told([(7 * done, done) for done in range(1, 31)], 1000)
    assert [line.split(",")[0] for line in lines] == [f"FedDyn: round {done} of 1000" for done in (1, 10, 19, 28)]
    lines = told([(0.1 * done, done) for done in range(1, 101)], 100)
    assert [int(line.split()[2]) for line in lines] == [1, *range(10, 101, 10)]
    assert lines[-1].endswith("10 s")


def test_a_round_without_figures_has_none() -> None:
    line = {"models": {"all": {"accuracy": 0.83125}}}
    assert figure(("all", "accuracy"), line) == "accuracy (mean of all devices) 0.8313"
    assert figure(("all", "accuracy"), {}) == ""
    lines: list[str] = []
    plain("round", lines.append, Clock())("FedDyn", 1, 1)
    assert lines == ["FedDyn: round 1 of 1, 0 s"]


def test_a_notebook_gets_one_output_that_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what IPython offers: a display that has an id can be updated."""
    seen: list[str] = []

    class Handle:
        def update(self, what: object) -> None:
            seen.append(repr(what))

    display = types.ModuleType("IPython.display")
    display.__dict__["display"] = lambda what, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    lines: list[str] = []
    assert shown.watched()
    with shown.progress("round", lines.append) as report:
        report("FedDyn", 1, 2, "loss of 'all' 0.5")
        report("FedDyn", 2, 2)
    assert seen[0] == "FedDyn: round 1 of 2, loss of 'all' 0.5, 0 s left"
    assert seen[1] == "FedDyn: round 2 of 2, loss of 'all' 0.5, 0 s"
    assert lines == []


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich's word for: take it for a terminal
    monkeypatch.setenv("COLUMNS", "100")
    with shown.progress("round", pytest.fail) as report:
        report("FedDyn", 1, 4, "loss of 'all' 0.5")
        report("FedDyn", 2, 4)
    said = capsys.readouterr().out
    assert "2/4" in said
    assert "loss of 'all' 0.5" in said
    assert "left" in said
