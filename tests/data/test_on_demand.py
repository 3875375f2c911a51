"""Devices whose samples are made when they are active."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn

SGD = feddyn.SGD(0.1, epochs=1, batch_size=5)


def make(device: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(device)
    x = rng.normal(0, 1, (5 + device % 4, 3)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


def population(devices: int) -> feddyn.Population:
    return feddyn.Population.on_demand(make, [5 + k % 4 for k in range(devices)], test=make(10**6))


@pytest.mark.parametrize("stack", [1, 4])
def test_on_demand_is_the_same_as_stored(stack: int) -> None:
    """Up to the record's word for where the data comes from, every bit is the same."""
    parts = [make(k) for k in range(12)]
    x, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    owner = np.repeat(np.arange(12), [len(part[1]) for part in parts])
    stored = feddyn.Population.from_arrays(x, y, owner, test=make(10**6))
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    runs = [
        feddyn.simulate(model, people, feddyn.FedDyn(0.1), SGD, participation=5, rounds=4, stack=stack)
        for people in (stored, population(12))
    ]
    assert runs[0].history == runs[1].history
    assert torch.equal(runs[0].models["all"], runs[1].models["all"])
    assert runs[1].setting["needs"] == ["model", "population"]
    assert runs[1].setting["population"]["samples"] == len(y)


def test_only_active_devices_are_made() -> None:
    made = set()

    def watched(device: int) -> tuple[Any, Any]:
        made.add(device)
        return make(device)

    people = feddyn.Population.on_demand(watched, np.full(10**6, 5), test=make(0))
    with pytest.raises(feddyn.InputError, match=r"device \d+ was given \d samples, but its size is 5"):
        feddyn.simulate(nn.Linear(3, 2), people, feddyn.FedAvg(), SGD, participation=20, rounds=1, workers=1)
    assert len(made) <= 21


def test_doubles_and_shares() -> None:
    people = population(8).to(torch.float64, torch.device("cpu"))
    assert people.samples(3)[0].dtype == torch.float64
    assert sum(people.share(k) for k in range(8)) == pytest.approx(8)
    rows = people.rows([6, 1])
    assert rows.starts.tolist() == [0, 7]
    assert torch.equal(rows.x[7:], people.samples(1)[0])


@pytest.mark.parametrize(
    ("sizes", "maker", "test", "words"),
    [
        ([], make, make(0), "sizes must hold"),
        ([5, 0], make, make(0), "sizes must hold"),
        ([5.5], make, make(0), "sizes must hold"),
        ([5], 7, make(0), "make must be a function"),
        ([5], make, (np.zeros((4, 2), np.float32), np.zeros(4, np.int64)), "the test set has samples of shape"),
        (
            [5],
            lambda k: (np.full((5, 3), np.nan), np.zeros(5, np.int64)),
            make(0),
            "device 0 holds a value",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(sizes: Any, maker: Any, test: Any, words: str) -> None:
    with pytest.raises(feddyn.InputError, match=words):
        feddyn.Population.on_demand(maker, sizes, test=test)
