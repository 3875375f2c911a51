"""How long runs take on this machine, from a short calibration: the networks are timed, on random data."""

import math
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from feddyn.algorithms import FedDyn
from feddyn.data.datasets.published import SOURCES
from feddyn.data.stored import Stored, from_arrays
from feddyn.data.transforms import Images, Tokens
from feddyn.metrics import Evaluation
from feddyn.runs.plan import Plan
from feddyn.runs.simulation import Simulation
from feddyn.settings.documents import Document
from feddyn.settings.names import MODELS
from feddyn.settings.schema import parameters
from feddyn.solvers.sgd import SGD
from feddyn.solvers.work import total_steps

LEAST = 0.4
"""Seconds that are timed of each network, at least."""
ROUNDS = 2
TESTED = 250
"""Samples that are evaluated."""


class Size(NamedTuple):
    """A data set from afar: the shape of a sample, classes, training and test samples."""

    shape: tuple[int, ...]
    classes: int
    training: int
    test: int


SIZES = {
    "mnist": Size((1, 28, 28), 10, 60_000, 10_000),
    "emnist-l": Size((1, 28, 28), 10, 48_000, 8_000),
    "cifar10": Size((3, 32, 32), 10, 50_000, 10_000),
    "cifar100": Size((3, 32, 32), 100, 50_000, 10_000),
    "shakespeare": Size((80,), 80, 200_000, 40_000),
}


class Speed(NamedTuple):
    """Seconds for a step of SGD on one core while the others are busy too, and to evaluate a sample on all of them."""

    step: float
    sample: float


class Calibration:
    """Speeds of networks, timed when first asked for."""

    def __init__(self, workers: int):
        self.workers = workers
        self._speeds: dict[str, Speed] = {}

    def seconds(self, document: Document, rounds: int) -> float:
        """How long so many rounds of a setting take."""
        population, solver = document["population"], document["solver"]
        size, pooled = SIZES[population["source"]], document["algorithm"]["name"] == "centralised"
        devices = 1 if pooled else population["devices"]
        active = math.ceil(document["participation"] * devices)
        batch = solver.get("batch_size") or size.training // devices
        samples = size.training // devices
        in_steps = "epochs" in solver or "steps" in solver
        steps = total_steps(samples, solver.get("epochs"), solver.get("steps"), batch) if in_steps else 1
        speed = self._speed(document, batch)
        evaluated = len(document["evaluation"]["models"]) * size.test
        training: float = math.ceil(active / self.workers) * steps * speed.step
        return rounds * (training + evaluated * speed.sample)

    def _speed(self, document: Document, batch: int) -> Speed:
        key = repr((document["model"], document["population"]["source"], batch))
        if key not in self._speeds:
            self._speeds[key] = self._time(document, batch)
        return self._speeds[key]

    def _time(self, document: Document, batch: int) -> Speed:
        population = _random_data(document["population"]["source"], self.workers, batch)
        network = _network(document["model"], SIZES[document["population"]["source"]])
        steps, plan = (
            2,
            Plan(
                network,
                population,
                FedDyn(0.1),
                SGD(1e-4, steps=2, batch_size=batch, weight_decay=1e-4, clip=10.0),
                1.0,
                ROUNDS,
                evaluation=Evaluation(every=ROUNDS, models=("all",)),
            ),
        )
        while True:
            simulation = Simulation(plan, workers=self.workers)
            clock, times = time.perf_counter(), []
            for _ in simulation:
                times.append(time.perf_counter() - clock)
                clock = time.perf_counter()
            if min(times) >= LEAST or steps >= 1000:
                break
            steps = min(1000, max(2 * steps, math.ceil(1.2 * steps * LEAST / min(times))))
            plan = replace(plan, solver=replace(plan.solver, steps=steps))  # type: ignore[type-var]
        samples = len(population.evaluated[1])
        clock = time.perf_counter()
        simulation.federation.evaluate()
        return Speed(min(times) / steps, (time.perf_counter() - clock) / samples / self.workers)


def _network(table: Document, size: Size) -> nn.Module:
    make = MODELS[table["name"]]
    sizes: dict[str, Any] = {"features": math.prod(size.shape), "classes": size.classes}
    given = {key: value for key, value in {**sizes, **table}.items() if key in parameters(make)}
    with torch.random.fork_rng(devices=[]):
        return make(**given)


def _random_data(source: str, devices: int, samples: int) -> Stored:
    """Samples that look like a data set's from afar, a batch for each device and some for the test."""
    rng, size = np.random.default_rng(0), SIZES[source]

    def draw(count: int) -> tuple[Any, Any]:
        top = 256 if len(size.shape) == 3 else size.classes
        x = rng.integers(0, top, (count, *size.shape), dtype=np.uint8)
        return x, rng.integers(0, size.classes, count)

    about = SOURCES.get(source)
    channels = size.shape[0]
    images = Images((0.5,) * channels, (0.25,) * channels, about.augment) if about else None
    x, y = draw(devices * samples)
    return from_arrays(x, y, np.repeat(np.arange(devices), samples), test=draw(TESTED), transform=images or Tokens())
