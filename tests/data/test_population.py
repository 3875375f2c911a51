"""Who holds which samples."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import feddyn
from feddyn.data.datasets.synthetic import KINDS, Kind, _around_a_mean_of_its_own

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 0, 1])


def test_samples_go_to_their_devices() -> None:
    population = feddyn.Population.from_arrays(X, Y, [1, 0, 1, 2, 0, 1])
    assert population.devices == 3
    assert population.sizes == [2, 3, 1]
    assert [population.share(k) for k in range(3)] == [1.0, 1.5, 0.5]
    x, y = population.samples(1)
    assert x[:, 0].tolist() == [0, 4, 10]
    assert y.tolist() == [0, 0, 1]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.randoms())
@settings(max_examples=50)
def test_every_sample_has_one_owner(owners: list[int], random: Any) -> None:
    names = [f"site {owner}" for owner in owners]
    x = np.arange(len(names), dtype=np.float64)[:, None]
    population = feddyn.Population.from_arrays(x, np.zeros(len(names), int), names)
    seen: dict[int, str] = {}
    for k, name in enumerate(population.names):
        seen |= {int(row): name for row in population.samples(k)[0][:, 0]}
    assert seen == dict(enumerate(names))
    assert sum(population.share(k) for k in range(population.devices)) == pytest.approx(population.devices)


def test_arrays_that_are_read_only_are_taken() -> None:
    x = X.copy()
    x.flags.writeable = False
    assert feddyn.Population.from_arrays(x, Y, [0] * 6).x.shape == (6, 2)


def test_the_byte_order_of_arrays_does_not_matter() -> None:
    """Nor does a type that torch does not have, where there is one that holds the same numbers."""
    same = feddyn.Population.from_arrays(X, Y, [0] * 6, test=(X, Y))
    owner = np.zeros(6, dtype=">i4")
    swapped = feddyn.Population.from_arrays(X.astype(">f4"), Y.astype(">i8"), owner, test=(X.astype(">f4"), Y))
    assert swapped.sha256() == same.sha256()
    wide = feddyn.Population.from_arrays(X.astype(np.longdouble), Y.astype(np.uint32), owner)
    assert torch.equal(wide.x, same.x.double())
    assert torch.equal(wide.y, same.y)
    tokens = feddyn.Population.from_arrays(X.astype(np.uint16), Y, owner)
    assert torch.equal(tokens.x, same.x.long())


def test_pooled_holds_everything() -> None:
    population = feddyn.Population.from_arrays(X, Y, [1, 0, 1, 2, 0, 1]).pooled()
    assert population.sizes == [6]
    assert population.share(0) == 1


def test_hash_sees_every_part() -> None:
    make = feddyn.Population.from_arrays
    populations = [
        make(X, Y, [0, 0, 0, 1, 1, 1]),
        make(X, Y, [0, 0, 1, 1, 1, 1]),
        make(X + 1, Y, [0, 0, 0, 1, 1, 1]),
        make(X, 1 - Y, [0, 0, 0, 1, 1, 1]),
        make(X, Y, [0, 0, 0, 1, 1, 1], test=(X, Y)),
        make(X, Y, list("aaabbb")),
    ]
    assert len({population.sha256() for population in populations}) == len(populations)


@pytest.mark.parametrize(
    ("x", "y", "device", "message"),
    [
        (X, Y, [0, 0, 2, 2, 3, 3], "device 1 has no samples"),
        (X, Y, [0, 0, 1], "device column has shape"),
        (X, Y, [0, 0, -1, 0, 0, 0], "whole numbers from 0"),
        (X, Y, [0.5] * 6, "whole numbers from 0"),
        (X, Y[:4], [0] * 6, "6 samples but 4 targets"),
        (X[:0], Y[:0], [], "no samples"),
        (np.where(X == 4, np.nan, X), Y, [0] * 6, "first in row 2"),
        (X.astype(str), Y, [0] * 6, "give numbers"),
        (X.astype(complex), Y, [0] * 6, "give numbers"),
        (X.astype(object), Y, [0] * 6, "give numbers"),
        (torch.tensor(X).to(torch.complex64), Y, [0] * 6, "give numbers"),
        (X, torch.tensor(Y).to(torch.complex64), [0] * 6, "targets has the type torch.complex64"),
        (torch.tensor(X).to(torch.float8_e4m3fn), Y, [0] * 6, "give numbers"),
        (torch.tensor(X, device="meta"), Y, [0] * 6, "on meta: give numbers"),
        (X, Y, np.array([0, 1, "a", 2, 0, 1], dtype=object), "the device column mixes types"),
        (X, Y, [1j] * 6, "whole numbers from 0"),
        ([[1.0], [2.0, 3.0]], [0, 1], [0, 1], "cannot be read as an array"),
    ],
)
def test_bad_data_is_refused(x: Any, y: Any, device: Any, message: str) -> None:
    with pytest.raises(feddyn.InputError, match=message):
        feddyn.Population.from_arrays(x, y, device)


def test_a_test_set_of_another_shape_is_refused() -> None:
    with pytest.raises(feddyn.InputError, match="the test set has samples of shape"):
        feddyn.Population.from_arrays(X, Y, [0] * 6, test=(X[:, :1], Y))


@pytest.mark.parametrize("kind", KINDS)
def test_synthetic_problems_follow_the_recipe(kind: Kind) -> None:
    """Labels: type 1 devices label the same points differently. Features: type 2 devices have other means."""
    population = feddyn.synthetic(kind, seed=1)
    assert population.devices == 20
    assert population.x.shape[1] == 30
    assert population.x.dtype == torch.float32
    assert set(population.y.tolist()) <= set(range(5))
    means = torch.stack([population.samples(k)[0].mean(0) for k in range(20)])
    assert (float(means.abs().mean()) > 0.5) == (kind == "type2")
    if kind == "type3":
        assert min(population.sizes) < 120
        assert max(population.sizes) > 280
        assert abs(len(population.y) / 20 - 200) < 1
    else:
        assert population.sizes == [200] * 20
    deviations = torch.cat([population.samples(k)[0] - means[k] for k in range(20)]).std(0)
    assert torch.allclose(deviations, torch.arange(1, 31) ** -0.6, rtol=0.1)


def test_only_type_1_devices_disagree_on_labels() -> None:
    """One linear model fits the pooled data almost perfectly, but for type 1."""
    accuracy = {}
    for kind in KINDS:
        population = feddyn.synthetic(kind, devices=5, samples=60, features=8, seed=2).pooled()
        sgd = feddyn.SGD(1.0, epochs=300)
        run = feddyn.simulate(torch.nn.Linear(8, 5), population, feddyn.FedAvg(), sgd, participation=1, rounds=1)
        accuracy[kind] = run.history[-1]["models"]["all"]["accuracy"]
    assert accuracy["type1"] < 0.75
    assert all(value > 0.9 for kind, value in accuracy.items() if kind != "type1")


def test_synthetic_problems_are_seeded_and_of_any_size() -> None:
    small = feddyn.synthetic("type3", devices=7, samples=11, features=3, classes=2, seed=5)
    again = feddyn.synthetic("type3", devices=7, samples=11, features=3, classes=2, seed=5)
    other = feddyn.synthetic("type3", devices=7, samples=11, features=3, classes=2, seed=6)
    assert small.sha256() == again.sha256() != other.sha256()
    assert small.devices == 7
    with pytest.raises(feddyn.InputError, match="did you mean 'type1'"):
        feddyn.synthetic("type_1")  # type: ignore[arg-type]
    for devices in (0, 10**20):
        with pytest.raises(feddyn.InputError, match="devices must be a whole number"):
            feddyn.synthetic("type1", devices=devices)
    for name in ("devices", "samples", "features", "classes"):
        with pytest.raises(feddyn.InputError, match=f"{10**10} {name}.* are .* numbers, more than"):
            feddyn.synthetic("type1", **{name: 10**10})


def test_a_devices_numbers_share_a_mean_that_differs_between_devices() -> None:
    """Of 150 numbers a device: variance 1 around the device's mean, and the means have variance gamma + 1/150."""
    rng = np.random.default_rng(0)
    draws = np.stack([_around_a_mean_of_its_own(rng, 3.0, 150) for _ in range(4000)])
    assert draws.var(axis=1, ddof=1).mean() == pytest.approx(1, rel=0.02)
    assert draws.mean(axis=1).var() == pytest.approx(3.0 + 1 / 150, rel=0.08)
    assert draws.mean() == pytest.approx(0, abs=0.1)


def test_the_devices_mean_moves_all_its_features() -> None:
    """Type 2: a device's features lie around a mean of their own, whose mean over features has variance 1 + 1/30."""
    population = feddyn.synthetic("type2", devices=400, samples=20, seed=3)
    means = torch.stack([population.samples(k)[0].mean() for k in range(400)])
    assert float(means.var()) == pytest.approx(1 + 1 / 30, rel=0.25)


def test_labels_have_a_bias() -> None:
    """With one feature and no bias only two classes could ever be the largest."""
    assert len(feddyn.synthetic("homogeneous", devices=2, samples=3000, features=1, classes=6).y.unique()) > 2
