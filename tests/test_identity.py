"""What a setting says of parts that exist only in memory: other arithmetic is another description."""

import copy
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.identity import describe, told_unseen
from feddyn.wire import Compressor, Quantized, TopK

FACTOR = 1.0


def closing_over(k: Any) -> Callable[..., Any]:
    return lambda output, y: k * nn.functional.cross_entropy(output, y)


def with_default(k: Any) -> Callable[..., Any]:
    def loss(output: torch.Tensor, y: torch.Tensor, k: Any = k) -> torch.Tensor:
        return torch.as_tensor(k * nn.functional.cross_entropy(output, y))

    return loss


def with_keyword_default(k: Any) -> Callable[..., Any]:
    def loss(output: torch.Tensor, y: torch.Tensor, *, k: Any = k) -> torch.Tensor:
        return torch.as_tensor(k * nn.functional.cross_entropy(output, y))

    return loss


def with_attribute(k: Any) -> Callable[..., Any]:
    def loss(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(loss.k * nn.functional.cross_entropy(output, y))  # type: ignore[attr-defined]

    loss.k = k  # type: ignore[attr-defined]
    return loss


def within_a_function(k: Any) -> Callable[..., Any]:
    def outer(*_: Any) -> Any:
        return closing_over(k)(*_)

    return outer


class Solve:
    """A solver with a step size of its own, as a plain attribute."""

    def __init__(self, lr: Any):
        self.lr = lr

    def __call__(self, problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        work.theta.copy_(problem.start)
        return feddyn.Solution(problem.start - self.lr * work.gradient(), self.lr)


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k: Any):
        self.k = k


class Colour(Enum):
    RED = 1.0
    BLUE = 2.0


def module_with(k: Any) -> nn.Module:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3))
    module[0].temperature = k
    return module


def hooked(k: Any) -> nn.Module:
    module = module_with(0)
    module.register_forward_hook(lambda _module, _input, output: k * output)
    return module


def itself(k: Any) -> dict[str, Any]:
    loop: dict[str, Any] = {"k": k}
    loop["self"] = loop
    return loop


MAKERS: list[Callable[[Any], object]] = [
    closing_over,
    with_default,
    with_keyword_default,
    with_attribute,
    within_a_function,
    Solve,
    lambda k: Solve(k).__call__,
    Slotted,
    module_with,
    hooked,
    itself,
    lambda k: partial(nn.functional.cross_entropy, label_smoothing=k / 10),
    lambda k: nn.CrossEntropyLoss(weight=torch.tensor([1.0, k])),
    lambda k: nn.CrossEntropyLoss(label_smoothing=k / 10),
    lambda k: lru_cache(closing_over(k)),
    lambda k: np.random.default_rng(int(k)),
    lambda k: random.Random(int(k)),
    lambda k: torch.Generator().manual_seed(int(k)),
    lambda k: {"a": [1, (2, {k})]},
    lambda k: Colour(k),
    lambda k: np.array([k, None], dtype=object),
    lambda k: torch.eye(3, dtype=torch.float64).mul(k).to_sparse(),
    lambda k: type("Own", (), {"factor": k}),
]


@pytest.mark.parametrize("make", MAKERS)
def test_other_arithmetic_is_another_description(make: Callable[[Any], object]) -> None:
    assert describe(make(1.0)) == describe(make(1.0))
    assert describe(make(1.0)) != describe(make(2.0))
    assert "unseen" not in describe(make(1.0))


def test_a_name_of_the_module_that_a_function_uses_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(FACTOR * nn.functional.cross_entropy(output, y))

    def through(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(next(with_default(k)(output, y) for k in (1, 2)))

    before, deep = describe(loss), describe(through)
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert describe(loss) != before
    assert describe(through) == deep
    monkeypatch.setitem(globals(), "with_default", with_keyword_default)
    assert describe(through) != deep


def test_a_copy_and_a_mode_change_nothing() -> None:
    module = nn.LSTM(3, 4)
    assert describe(copy.deepcopy(module)) == describe(module)
    assert describe(module.eval()) == describe(copy.deepcopy(module).train())


def test_descriptions_are_the_same_in_every_process() -> None:
    """Sets and hashes of texts are in another order there."""
    words = "from tests.test_identity import *; print([describe(make(1.0))['sha256'] for make in MAKERS])"
    root = Path(__file__).parents[1]
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        found.add(subprocess.check_output([sys.executable, "-c", words], cwd=root, env=environment, text=True))
    assert len(found) == 1


def test_what_cannot_be_seen_is_named() -> None:
    solve = Solve(0.1)
    solve.lock = threading.Lock()  # type: ignore[attr-defined]
    assert describe(solve)["unseen"] == ["lock (_thread.lock)"]
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert describe(deep)["unseen"] == ["what is nested too deeply"]
    assert told_unseen({"solver": [describe(solve)], "loss": describe(deep)}) == [
        "lock (_thread.lock)",
        "what is nested too deeply",
    ]


def test_a_column_or_parameter_called_unseen_hides_nothing() -> None:
    encoding = {name: {"mean": 0.0, "deviation": 1.0} for name in ("sha256", "unseen")}
    assert told_unseen({"source": "table", "sha256": "0" * 64, "encoding": encoding}) == []
    assert told_unseen({"name": "mine", "unseen": 0.5}) == []


def test_a_run_resumes_only_with_the_arithmetic_it_began_with(unbalanced: Stored, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"participation": 3, "rounds": 2, "workers": 1, "out": tmp_path / "out"}

    def run(solver: feddyn.solvers.Solve, **more: Any) -> feddyn.Run:
        return feddyn.simulate(module_with(0).double(), unbalanced, feddyn.FedAvg(), solver, **arguments, **more)

    run(Solve(0.1))
    assert run(Solve(0.1), resume=True).status == "finished"
    with pytest.raises(feddyn.InputError, match="another setting"):
        run(Solve(0.5), resume=True)


def test_what_cannot_be_seen_is_resumed_only_with_a_word(unbalanced: Stored, tmp_path: Path) -> None:
    solve = Solve(0.1)
    solve.lock = threading.Lock()  # type: ignore[attr-defined]

    def run(**more: Any) -> feddyn.Run:
        return feddyn.simulate(
            module_with(0).double(), unbalanced, feddyn.FedAvg(), solve, participation=3, rounds=2, workers=1, **more
        )

    run()  # nothing to warn of without a record
    with pytest.warns(UserWarning, match=r"no record can describe .* the solver holds lock \(_thread.lock\)"):
        first = run(out=tmp_path / "out")
    with pytest.raises(feddyn.InputError, match="resume='unchecked'"):
        run(out=tmp_path / "out", resume=True)
    with pytest.warns(UserWarning, match="no record can describe"):
        assert run(out=tmp_path / "out", resume="unchecked").history == first.history
    with pytest.raises(feddyn.InputError, match="resume must be True, False or 'unchecked', not 'yes'"):
        run(out=tmp_path / "out", resume="yes")


@pytest.mark.parametrize("inside", ["solver", "evaluation", "uplink"])
def test_what_cannot_be_seen_is_found_however_deep_it_is(inside: str, unbalanced: Stored, tmp_path: Path) -> None:
    """In the schedule of a solver, in a metric, in what a compressor is made of."""
    lock = threading.Lock()

    def held(*_: Any) -> Any:
        return 1.0 if lock else 0.0

    class Held(feddyn.Schedule):
        def __call__(self, round: int) -> float:
            return float(held())

    class Halved(Compressor):
        def write(self, vector: Any, sizes: Any, seed: int) -> bytes:
            return Quantized(4).write(vector, sizes, seed) if lock else b""

        def read(self, reader: Any, sizes: Any) -> Any:
            return Quantized(4).read(reader, sizes)

    more: dict[str, dict[str, Any]] = {
        "solver": {"solver": feddyn.SGD(0.1, epochs=1, schedule=Held())},
        "evaluation": {"metrics": [feddyn.Metric("held", lambda output, y: (0, 1), held)]},
        "uplink": {"uplink": TopK(0.5, values=Halved())},
    }
    arguments: dict[str, Any] = {"solver": feddyn.SGD(0.1, epochs=1), "participation": 3, "rounds": 1, "workers": 1}
    arguments |= more[inside]

    def run(**rest: Any) -> feddyn.Run:
        return feddyn.simulate(module_with(0).double(), unbalanced, feddyn.FedAvg(), out=tmp_path, **arguments, **rest)

    with pytest.warns(UserWarning, match=rf"the {inside} holds .*lock"):
        assert inside in run().setting["needs"]
    with pytest.raises(feddyn.InputError, match="resume='unchecked'"):
        run(resume=True)
