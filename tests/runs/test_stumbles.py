"""Mistakes in Python that got a traceback once, and now a sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from tests.runs.test_own_parts import SGD, plan


@pytest.mark.parametrize(
    ("method", "wrong", "sentence"),
    [
        ("report", lambda self, down, device, share, found: {"theta": found.theta}, "report must give two things"),
        ("report", lambda *_: None, "report must give two things, .* not nothing"),
        ("report", lambda *_: ({}, 1.0), "report must give vectors by name"),
        ("aggregate", lambda self, server, total, count, devices: {"h": server["h"]}, "whole of the server's state"),
        (
            "aggregate",
            lambda self, server, total, *_: {"theta": total["theta"]},
            "h of 15, not theta of 15",
        ),
        ("aggregate", lambda self, server, total, *_: {"theta": total["model"]}, "aggregate fails .*KeyError: 'model'"),
        ("aggregate", lambda *_: None, "aggregate must give vectors by name"),
        ("server", lambda self, theta: {"model": theta}, "server must give the server's model as 'theta'"),
        ("problem", lambda *_: None, "problem must give a Problem, not nothing"),
        ("broadcast", lambda self, server: server["theta"], "broadcast must give vectors by name, .*not a Tensor"),
    ],
)
@pytest.mark.parametrize("stack", [None, 1])
def test_a_method_that_gives_something_else_is_told(
    unbalanced: Stored,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    wrong: Callable[..., Any],
    sentence: str,
    stack: int | None,
) -> None:
    monkeypatch.setattr(feddyn.FedDyn, method, wrong)
    with pytest.raises(feddyn.InputError, match=f"FedDyn.*{sentence}"):
        feddyn.Simulation(plan(unbalanced, algorithm=feddyn.FedDyn(0.1), stack=stack))


def test_a_server_that_forgets_later_is_told_too(unbalanced: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    true, calls = feddyn.FedDyn.aggregate, []

    def forgetful(self: feddyn.FedDyn, *words: Any) -> Any:
        calls.append(1)
        state = true(self, *words)
        return state if len(calls) < 3 else {"theta": state["theta"]}

    monkeypatch.setattr(feddyn.FedDyn, "aggregate", forgetful)
    simulation = feddyn.Simulation(plan(unbalanced, algorithm=feddyn.FedDyn(0.1), rounds=4), workers=1)
    with pytest.raises(feddyn.InputError, match="aggregate must give the whole of the server's state"):
        list(simulation)
    assert len(simulation.run.history) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"algorithm": feddyn.FedDyn}, r"algorithm is the class FedDyn: give one of it, FedDyn\(...\)"),
        ({"model": nn.Linear}, r"model is the class Linear: give one of it, Linear\(...\)"),
        ({"solver": feddyn.SGD}, r"solver .*SGD\(...\)"),
        ({"target": feddyn.Target}, "target is the class Target"),
    ],
)
def test_a_class_in_the_place_of_an_object(unbalanced: Stored, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(feddyn.InputError, match=sentence):
        plan(unbalanced, **changes)


def test_a_tilde_is_the_home_directory(unbalanced: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    model, solver = nn.Linear(4, 3), SGD
    for out in ("~/x", Path("~/y")):
        feddyn.simulate(model, unbalanced, feddyn.FedAvg(), solver, participation=2, rounds=1, out=out, workers=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]
    assert feddyn.load("~/x").path == tmp_path / "x"


def test_an_accuracy_is_a_fraction() -> None:
    with pytest.raises(feddyn.InputError, match=r"write 0.95 for 95%"):
        feddyn.Target("accuracy", 95)
    assert feddyn.Target("accuracy", 1).value == 1
    assert feddyn.Target("perplexity", 95).value == 95
