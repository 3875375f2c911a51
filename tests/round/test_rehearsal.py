"""What fails in code of one's own is told with its file and line before anything is trained."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

import feddyn
from feddyn.algorithms.base import Algorithm, Problem, Scalar, Solution, State, Vector
from feddyn.data.stored import Stored

HERE = r"\(test_rehearsal.py, line \d+\)"


class Lost(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = {"x": x}
        return torch.as_tensor(self.layer(hidden["y"]))


def narrowed(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x[:, [7]].to(dtype)


@dataclass(frozen=True)
class Sparse(Algorithm):
    """A method that forgets that its state has a name."""

    def server(self, theta: Vector) -> State:
        return {"theta": theta}

    def device(self, theta: Vector) -> State:
        return {}

    def broadcast(self, server: State) -> State:
        return {"model": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return {}, {"theta": found.theta}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return total

    def weight(self, share: Scalar) -> Scalar:
        return 1.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": Lost()}, f"the model does not fit the devices' samples .*: KeyError: 'y' {HERE}"),
        ({"transform": narrowed}, f"the transform does not fit the devices' samples .*: IndexError: .* {HERE}"),
        ({"algorithm": Sparse()}, f"Sparse.problem fails when it is tried out: KeyError: 'theta' {HERE}"),
        ({"model": nn.Linear(5, 3)}, r"the model does not fit .*: mat1 and mat2 shapes [^(]* \(5x4 and 5x3\)$"),
    ],
)
def test_errors_of_ones_own_code_have_a_line(unbalanced: Stored, changes: dict[str, Any], sentence: str) -> None:
    population = unbalanced
    if "transform" in changes:
        x, y = unbalanced.excerpt()
        population = Stored.from_arrays(x, y, [0] * len(y), transform=changes.pop("transform"))
    arguments: dict[str, Any] = {"model": nn.Linear(4, 3), "algorithm": feddyn.FedAvg(), **changes}
    with pytest.raises(feddyn.InputError, match=sentence):
        feddyn.simulate(**arguments, population=population, solver=feddyn.SGD(0.1, epochs=1), participation=1, rounds=1)
