"""Who is active."""

import math

import numpy as np
import pytest

from feddyn.round.participation import Sampler


def test_everybody_one_device_and_a_schedule() -> None:
    assert Sampler(1.0, 5, 2, 0).active(0) == [0, 1, 2, 3, 4]
    assert len(Sampler(1, 5, 2, 0).active(0)) == 1
    assert Sampler([[3, 1], [0]], 5, 2, 0).active(0) == [1, 3]


def test_each_device_with_its_probability() -> None:
    """Every device is active with probability p / (1 - (1-p)^m), an empty draw being drawn again."""
    m, p, rounds = 10, 0.1, 4000
    sampler = Sampler(p, m, rounds, 1)
    draws = np.zeros((rounds, m))
    for t in range(rounds):
        draws[t, sampler.active(t)] = 1
    assert draws.sum(1).min() >= 1
    expected = p / (1 - (1 - p) ** m)
    assert draws.mean(0) == pytest.approx(expected, abs=4 * np.sqrt(expected / rounds))
    together = (draws[:, :, None] * draws[:, None, :]).mean(0)[~np.eye(m, dtype=bool)]
    assert together.mean() == pytest.approx(p * p / (1 - (1 - p) ** m), rel=0.1)


def test_a_number_of_devices_is_uniform_and_seeded() -> None:
    sampler = Sampler(3, 10, 3000, 1)
    counts = np.bincount(np.concatenate([sampler.active(t) for t in range(3000)]), minlength=10)
    assert counts == pytest.approx(900, abs=110)
    assert all(len(set(sampler.active(t))) == 3 for t in range(50))
    assert [Sampler(3, 10, 9, 1).active(t) for t in range(9)] == [sampler.active(t) for t in range(9)]
    assert [Sampler(3, 10, 9, 2).active(t) for t in range(9)] != [sampler.active(t) for t in range(9)]


def test_a_round_of_a_million_devices_is_cheap() -> None:
    """The cost depends on the active devices: nothing of size m is drawn."""
    active = Sampler(1e-5, 1_000_000, 1, 0).active(0)
    assert 1 <= len(active) <= 40


@pytest.mark.parametrize("p", [1e-9, 1e-300, 5e-324])
def test_a_tiny_probability_is_not_drawn_until_somebody_comes(p: float) -> None:
    """Of four devices with such a probability somebody is active once in 2.5e8 rounds or never: one of them is."""
    sampler = Sampler(p, 4, 2000, 0)
    counts = np.bincount(np.concatenate([sampler.active(t) for t in range(2000)]), minlength=4)
    assert counts.sum() == 2000
    assert counts == pytest.approx(500, abs=100)


@pytest.mark.parametrize("m", [3, 1000])
def test_rare_activity_follows_the_truncated_binomial(m: int) -> None:
    """With (1-p)^m = 0.991, P(k devices | at least one) = C(m,k) p^k (1-p)^(m-k) / (1 - (1-p)^m)."""
    p, rounds = 1 - 0.991 ** (1 / m), 20_000
    sampler = Sampler(p, m, rounds, 3)
    sizes = np.array([len(sampler.active(t)) for t in range(rounds)])
    for k in (1, 2):
        chance = math.comb(m, k) * p**k * (1 - p) ** (m - k) / (1 - (1 - p) ** m)
        assert (sizes == k).mean() == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / rounds))
