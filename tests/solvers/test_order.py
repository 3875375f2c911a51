"""Orders of samples: permutations, reproducible, and alike for a device alone and in a stack."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import feddyn
from feddyn.data.population import Rows
from feddyn.models.flat import FlatModel
from feddyn.models.stacked import stacked
from feddyn.solvers.order import hashes, orders
from feddyn.solvers.stack import StackedWork


def test_the_hash_is_splitmix64() -> None:
    """The first outputs of the published generator from the states 0 and 1234567."""
    seeds = np.array([0, 1234567], dtype=np.uint64)[:, None]
    with np.errstate(over="ignore"):
        found = hashes(seeds, np.arange(3, dtype=np.uint64))
    assert found[0].tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert found[1].tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_orders_are_permutations_that_do_not_depend_on_the_company(seed: int, sizes: list[int]) -> None:
    seeds = np.array([(seed + 7 * i) % 2**64 for i in range(len(sizes))], dtype=np.uint64)
    together = orders(seeds, sizes, range(3))
    for k, size in enumerate(sizes):
        alone = orders(seeds[k : k + 1], [size], range(3))[0]
        assert np.array_equal(alone, together[k, :, :size])
        assert all(sorted(order) == list(range(size)) for order in alone)
    assert np.array_equal(orders(seeds, sizes, range(1, 2))[:, 0], together[:, 1])


def test_every_sample_comes_anywhere_equally_often() -> None:
    """6,000 orders of 6 samples: each of the 36 counts is binomial with mean 1,000 and deviation 29."""
    found = orders(np.arange(2000, dtype=np.uint64), [6] * 2000, range(3)).reshape(-1, 6)
    counts = np.array([(found == sample).sum(0) for sample in range(6)])
    assert abs(counts - 1000).max() < 5 * 29


@pytest.mark.parametrize(
    ("epochs", "steps", "batch"), [(3, None, 4), (None, 11, 4), (2, None, None), (1, None, 100), (None, 3, 1)]
)
def test_a_stack_visits_what_each_device_would_visit_alone(
    epochs: int | None, steps: int | None, batch: int | None
) -> None:
    sizes, starts = np.array([7, 4, 13, 1]), np.array([0, 7, 11, 24])
    x, y = torch.arange(25.0)[:, None], torch.zeros(25, dtype=torch.int64)
    seeds = np.array([3, 1, 4, 15], dtype=np.uint64)
    model = FlatModel(nn.Linear(1, 2))
    stack = StackedWork(model, stacked(model), 1, Rows(x, y, starts, sizes), 0, seeds)
    index, valid = stack._table(epochs, steps, batch)
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        work = feddyn.Work(model, x[start : start + size], y[:size], 0, int(seeds[k]))
        everything = torch.arange(size)
        alone = [everything if step.batch is None else step.batch for step in work.steps(epochs, steps, batch)]
        visited = [index[step, k][valid[step, k]] - start for step in range(len(index)) if valid[step, k].any()]
        assert [list(rows) for rows in visited] == [rows.tolist() for rows in alone]
