"""Splits: every sample once, the sizes asked for, the classes as the prior says, and no hang when classes run out."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feddyn
from feddyn.data import partition
from feddyn.data.partition import Parts

LABELS = np.repeat(np.arange(10), 60)

SPLITS: dict[str, Callable[[np.ndarray, int, int], Parts]] = {
    "iid": lambda y, m, seed: partition.iid(y, m, seed=seed),
    "class-exact": lambda y, m, seed: partition.class_exact(y, m, seed=seed),
    "dirichlet 0.3": lambda y, m, seed: partition.dirichlet(y, m, 0.3, seed=seed),
    "dirichlet 0.001": lambda y, m, seed: partition.dirichlet(y, m, 0.001, seed=seed),
    "dirichlet 1e6": lambda y, m, seed: partition.dirichlet(y, m, 1e6, seed=seed),
    "by class 5": lambda y, m, seed: partition.dirichlet_by_class(y, m, 5.0, seed=seed),
    "shards 2": lambda y, m, seed: partition.shards(y, m, 2, seed=seed),
}


@pytest.mark.parametrize("split", SPLITS)
@given(
    labels=st.lists(st.integers(0, 5), min_size=40, max_size=200), devices=st.integers(1, 8), seed=st.integers(0, 99)
)
@settings(max_examples=30)
def test_every_sample_goes_to_exactly_one_device(split: str, labels: list[int], devices: int, seed: int) -> None:
    try:
        parts = SPLITS[split](np.array(labels), devices, seed)
    except feddyn.InputError:
        assert split == "by class 5"  # it may say that no draw gave every device a sample
        return
    assert len(parts) == devices
    assert all(len(part) > 0 for part in parts)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    again = SPLITS[split](np.array(labels), devices, seed)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@pytest.mark.parametrize("split", ["iid", "class-exact", "dirichlet 0.3", "dirichlet 0.001"])
def test_equal_sizes_unless_others_are_asked_for(split: str) -> None:
    assert {len(part) for part in SPLITS[split](LABELS, 20, 0)} == {30}


def test_unbalanced_sizes() -> None:
    sizes = partition.lognormal_sizes(600, 20, 0.3, seed=1)
    for parts in (partition.iid(LABELS, 20, sizes=sizes), partition.dirichlet(LABELS, 20, 0.3, sizes=sizes)):
        assert [len(part) for part in parts] == sizes


@given(st.integers(1, 300), st.integers(0, 700), st.floats(0, 3), st.integers(0, 50))
@settings(max_examples=100)
def test_lognormal_sizes_use_every_sample(devices: int, more: int, sigma: float, seed: int) -> None:
    sizes = partition.lognormal_sizes(devices + more, devices, sigma, seed=seed)
    assert len(sizes) == devices
    assert min(sizes) >= 1
    assert sum(sizes) == devices + more


def test_lognormal_sizes_have_the_spread_asked_for() -> None:
    sizes = np.array(partition.lognormal_sizes(500_000, 1000, 0.3))
    assert np.log(sizes).std() == pytest.approx(0.3, abs=0.02)
    assert partition.lognormal_sizes(600, 20, 0.0) == [30] * 20


def test_seeds_matter() -> None:
    for split in SPLITS.values():
        one, other = split(LABELS, 5, 0), split(LABELS, 5, 1)
        assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_class_exact_is_exact() -> None:
    for part in partition.class_exact(LABELS, 20):
        assert np.bincount(LABELS[part], minlength=10).tolist() == [3] * 10


def test_shards_have_few_classes() -> None:
    for part in partition.shards(LABELS, 20, 2):
        assert len(np.unique(LABELS[part])) <= 2


def test_class_ratios_follow_the_prior() -> None:
    """With few devices and plenty of samples no class runs out, and a device's ratios are its Dirichlet draw:
    E sum_c p_c^2 = (a + 1) / (C a + 1) for Dirichlet(a) over C classes."""
    labels = np.repeat(np.arange(10), 40_000)
    for concentration in (0.3, 0.6, 10.0):
        found = []
        for seed in range(60):
            part = partition.dirichlet(labels[::100], 8, concentration, seed=seed, sizes=[40] * 7 + [4000 - 280])[0]
            p = np.bincount(labels[::100][part], minlength=10) / len(part)
            found.append((p @ p - 1 / len(part)) / (1 - 1 / len(part)))  # unbiased for a sample of this size
        assert np.mean(found) == pytest.approx((concentration + 1) / (10 * concentration + 1), rel=0.2)


def test_a_class_that_runs_out_is_replaced_by_the_rest_of_the_prior() -> None:
    """Two classes, one of them with a single sample: every device must fill up with the other."""
    labels = np.array([0] + [1] * 99)
    parts = partition.dirichlet(labels, 10, 0.01, seed=3)
    assert [len(part) for part in parts] == [10] * 10


def test_a_large_split_is_fast() -> None:
    """50,000 samples over 1,000 devices: the published loop draws classes that have run out again and again, for
    minutes. What it takes here is counted in calls of functions, which are the same on every machine."""
    labels, calls = np.random.default_rng(0).integers(0, 100, 50_000), 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parts = partition.dirichlet(labels, 1000, 0.3)
    finally:
        sys.setprofile(before)
    assert calls < 20 * 50_000
    assert sum(map(len, parts)) == 50_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: partition.iid(LABELS, 0), "cannot be split over 0 devices"),
        (lambda: partition.iid(LABELS, 601), "600 samples cannot be split over 601 devices"),
        (lambda: partition.iid(LABELS, 2, sizes=[1, 2]), "add up to 600"),
        (lambda: partition.iid(LABELS / 2, 2), "whole number as the class"),
        (lambda: partition.dirichlet(LABELS, 2, 0.0), "concentration must be"),
        (lambda: partition.dirichlet(LABELS, 2, float("nan")), "concentration must be"),
        (lambda: partition.dirichlet_by_class(LABELS, 500, 0.001), "use fewer devices or a larger concentration"),
        (lambda: partition.shards(LABELS, 500, 2), "cannot be cut from 600 samples"),
        (lambda: partition.lognormal_sizes(5, 6, 0.3), "cannot be split"),
        (lambda: partition.lognormal_sizes(9, 6, -1.0), "sigma must be"),
    ],
)
def test_bad_splits_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(feddyn.InputError, match=message):
        make()
