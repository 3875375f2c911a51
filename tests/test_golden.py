"""Trajectories of the authors' own code, every round of every method, on tiny problems with full-batch steps.

Each file holds the data, the initial model, the schedule and, a row a round, the flat models that the authors' release
produced. Nothing in them is random, so a correct implementation meets every vector.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.solvers import Solve

FILES = sorted((Path(__file__).parent / "golden").glob("*.npz"))
TOLERANCE = 2e-6


@dataclass(frozen=True)
class AuthorsSGD:
    """The authors' order of FedDyn's step: prox * theta sits in the weight decay, outside the clip."""

    lr: float
    epochs: int
    weight_decay: float
    clip: float

    def __call__(self, problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        assert problem.tilt is not None
        assert problem.center is not None
        theta = work.theta.copy_(problem.start)
        for _ in range(self.epochs):
            inner = work.gradient() + problem.tilt - problem.prox * problem.center
            inner = inner * (self.clip / (inner.norm() + 1e-6)).clamp(max=1)
            theta.sub_(self.lr * (inner + (self.weight_decay + problem.prox) * theta))
        return feddyn.Solution(theta, self.lr * self.epochs)


def network(kind: str) -> nn.Module:
    if kind == "linear 8->4":
        return nn.Linear(8, 4)
    assert kind == "mlp 8->12->4 relu"
    return nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4))


def algorithm(method: str, meta: dict[str, Any]) -> feddyn.Algorithm:
    return {
        "feddyn": feddyn.FedDyn(meta["alpha"]),
        "fedavg": feddyn.FedAvg(),
        "fedprox": feddyn.FedProx(meta["mu"]),
        "scaffold": feddyn.Scaffold(),
    }[method]


def solver(method: str, meta: dict[str, Any]) -> Solve:
    if method == "feddyn" and meta["name"] == "linear-clipped":
        return AuthorsSGD(meta["lr"], meta["local_epochs"], meta["weight_decay"], meta["clip_norm"])
    length = {"steps": meta["scaffold_K"]} if method == "scaffold" else {"epochs": meta["local_epochs"]}
    return feddyn.SGD(
        meta["lr"], weight_decay=meta["weight_decay"], lr_decay=meta["lr_decay"], clip=meta["clip_norm"], **length
    )


def cases() -> list[Any]:
    found = []
    for file in FILES:
        methods = sorted({name.split("_")[0] for name in np.load(file).files if name.endswith("_all")})
        found += [pytest.param(file, method, id=f"{file.stem}-{method}") for method in methods]
    return found


def test_every_file_and_method_is_there() -> None:
    """Six files of four methods, but for SCAFFOLD where lr decays (the authors' divides by the undecayed lr)."""
    assert len(cases()) == 23


@pytest.mark.parametrize(("file", "method"), cases())
def test_every_round_equals_the_authors(file: Path, method: str) -> None:
    golden = np.load(file)
    meta = json.loads(str(golden["meta"]))
    sizes = golden["sizes"]
    population = feddyn.Population.from_arrays(golden["x"], golden["y"], np.repeat(np.arange(len(sizes)), sizes))
    model = network(meta["model"])
    nn.utils.vector_to_parameters(torch.from_numpy(golden["initial"]), model.parameters())
    plan = feddyn.Plan(
        model, population, algorithm(method, meta), solver(method, meta), meta["schedule"], meta["rounds"]
    )
    simulation = feddyn.Simulation(plan)
    worst, compared = 0.0, 0
    for t, _ in enumerate(simulation):
        for name, vector in simulation.run.models.items():
            if f"{method}_{name}" in golden.files:
                worst = max(worst, float(np.abs(vector.numpy() - golden[f"{method}_{name}"][t]).max()))
                compared += 1
    assert compared == meta["rounds"] * (3 if method == "feddyn" else 2)
    assert worst <= TOLERANCE, worst
