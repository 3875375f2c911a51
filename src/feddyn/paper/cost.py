"""How much computing a run takes, from its setting alone: enough to tell which runs are cheap."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from feddyn.settings.documents import Document
from feddyn.solvers.work import total_steps


class Size(NamedTuple):
    """Training and test samples of a data set."""

    training: int
    test: int


class Pace(NamedTuple):
    """Seconds that a core spends on a sample: to train with it, and to evaluate it."""

    train: float
    evaluate: float


SIZES: Mapping[str, Size] = {
    "synthetic": Size(4_000, 4_000),
    "mnist": Size(60_000, 10_000),
    "emnist-l": Size(48_000, 8_000),
    "cifar10": Size(50_000, 10_000),
    "cifar100": Size(50_000, 10_000),
    "shakespeare": Size(200_000, 40_000),
}
PACES: Mapping[str, Pace] = {
    "linear": Pace(6e-7, 1e-7),
    "mlp": Pace(1.7e-5, 4.6e-6),
    "cnn": Pace(5.1e-4, 1.6e-4),
    "lstm": Pace(4.2e-4, 1.2e-4),
    "resnet18": Pace(6e-3, 4e-4),
}
"""Paces of the networks, measured once on a core of the machine of docs/results; `linear` in batches of settings."""


def core_seconds(document: Document, rounds: int) -> float:
    """Seconds that so many rounds of a setting of the paper take one core of that machine."""
    population, solver = document["population"], document["solver"]
    size, pace = SIZES[population["source"]], PACES[document["model"]["name"]]
    pooled = document["algorithm"]["name"] == "centralised"
    devices = 1 if pooled else population.get("devices", 20)
    samples = population.get("samples", size.training // devices)
    batch = min(solver.get("batch_size") or samples, samples)
    in_steps = "epochs" in solver or "steps" in solver
    steps = total_steps(samples, solver.get("epochs"), solver.get("steps"), batch) if in_steps else 1
    trained: int = math.ceil(document["participation"] * devices) * steps * batch
    evaluated = len(document["evaluation"]["models"]) * size.test
    return rounds * (trained * pace.train + evaluated * pace.evaluate)
