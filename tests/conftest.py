"""Small federations with known answers."""

import signal
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

import feddyn
from feddyn.data.stored import Stored

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no fault

SLOW = ("test_ranks.py",)
"""Files, or tests as file::function, that take seconds or start many processes; `make check` leaves them out."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the slow tests, so that `-m "not slow"` leaves them out."""
    for item in items:
        if item.path.name in SLOW or f"{item.path.name}::{getattr(item, 'originalname', item.name)}" in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """The command line takes Ctrl-C and SIGTERM for its own until its process ends; here the process goes on."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def make_logistic(sizes: list[int], features: int = 4, classes: int = 3, seed: int = 0) -> Stored:
    """Heterogeneous devices: each has features of its own mean and labels by a linear model of its own."""
    rng = np.random.default_rng(seed)
    x, y = [], []
    for size in sizes:
        points = rng.normal(rng.normal(0, 0.5, features), 0.7, (size, features))
        x.append(points)
        y.append(np.argmax(points @ rng.normal(0, 2, (features, classes)), axis=1))
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return feddyn.Population.from_arrays(np.concatenate(x), np.concatenate(y), owner)


@pytest.fixture(scope="session")
def unbalanced() -> Stored:
    """Ten unequal, heterogeneous devices, in float64."""
    return make_logistic([10, 40, 15, 30, 22, 9, 55, 18, 27, 34])


@pytest.fixture
def logistic() -> torch.nn.Module:
    """The linear model for them, started away from zero."""
    torch.manual_seed(1)
    return torch.nn.Linear(4, 3).double()
