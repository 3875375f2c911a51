"""What random splits and problems look like: samples are drawn freely, devices differ, spreads are those stated."""

from collections.abc import Callable

import numpy as np
import pytest

import feddyn
from feddyn.data import partition
from feddyn.data.partition import Parts

LABELS = np.repeat([0, 1], 20)
EVEN: dict[str, Callable[[int], Parts]] = {
    "iid": lambda seed: partition.iid(LABELS, 4, seed=seed),
    "class-exact": lambda seed: partition.class_exact(LABELS, 4, seed=seed),
    "dirichlet": lambda seed: partition.dirichlet(LABELS, 4, 1e6, seed=seed),
    "dirichlet-by-class": lambda seed: partition.dirichlet_by_class(LABELS, 4, 1e6, seed=seed),
    "shards": lambda seed: partition.shards(LABELS, 4, 2, seed=seed),
}


@pytest.mark.parametrize("split", EVEN)
def test_no_two_samples_of_a_class_are_bound_to_each_other(split: str) -> None:
    """40 samples, 4 devices of 10: that two of a class meet has a probability of 9/39 where sizes alone are fixed, of
    4/19 where devices have five of each class, and with shards of five and two a device of 4/19 + 15/19 * 1/7 = 0.32.
    Over 300 seeds the deviation is below 0.03. Neighbours, and samples as far apart as there are devices, are no
    exception."""
    for one, other in ((0, 1), (0, 4), (20, 39)):
        together = [any(one in part and other in part for part in EVEN[split](seed)) for seed in range(300)]
        assert 0.12 < np.mean(together) < 0.42


def test_dirichlet_gives_a_small_device_samples_from_anywhere() -> None:
    """It is full long before the others, so samples that were dealt out in their order would all come from one end. Of
    1000, the mean number of 50 * 10 drawn freely is 499.5 with a deviation of 13."""
    labels = np.zeros(1000, dtype=np.int64)
    found = [partition.dirichlet(labels, 2, 0.3, seed=seed, sizes=[10, 990])[0].mean() for seed in range(50)]
    assert np.mean(found) == pytest.approx(499.5, abs=60)


def test_dirichlet_devices_have_priors_of_their_own() -> None:
    """With a prior each, SUM_c p_c^2 of a device is (a + 1) / (C a + 1) = 0.325 in the mean for a = 0.3, C = 10, less
    what classes that run out even out. With one prior for all, all must share every class alike, which is 0.1."""
    labels = np.repeat(np.arange(10), 600)
    found = []
    for part in partition.dirichlet(labels, 40, 0.3):
        p = np.bincount(labels[part], minlength=10) / len(part)
        found.append((p @ p - 1 / len(part)) / (1 - 1 / len(part)))  # unbiased for a sample of this size
    assert 0.2 < np.mean(found) < 0.4


def test_a_device_whose_classes_have_run_out_draws_by_what_is_left() -> None:
    """Concentrated priors are one class each. A device that wants the rare one gets little of it and then, as 900 and
    90 samples are left of the others, one of the last class in eleven; not every second one."""
    labels, rest = np.repeat([0, 1, 2], [10, 900, 90]), []
    for seed in range(60):
        part = partition.dirichlet(labels, 2, 1e-6, seed=seed, sizes=[40, 960])[0]
        rare, common, last = np.bincount(labels[part], minlength=3)
        if rare == 10 and common and last:
            rest.append(last / (common + last))
    assert len(rest) > 5
    assert np.mean(rest) == pytest.approx(1 / 11, abs=0.06)


def test_unequal_synthetic_devices_have_the_stated_spread() -> None:
    """Type 3: log n is normal with variance gamma_3 = 0.25; a deviation of 0.5, of 1000 devices to within 0.011."""
    population = feddyn.synthetic("type3", devices=1000, samples=100, features=1, classes=2)
    assert np.log(population.sizes).std() == pytest.approx(0.5, abs=0.05)


def test_the_mean_of_a_devices_label_model_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Type 1 as the paper prints it: mu_i is added to all of theta*_i and b*_i, and so mu_i (1 + SUM_j x_j) to the
    scores of all classes alike, of which the largest stays the largest. So gamma_1 changes no label."""
    labels = []
    for gamma in (1.0, 9.0):
        monkeypatch.setattr("feddyn.data.datasets.synthetic.GAMMA_1", gamma)
        labels.append(feddyn.synthetic("type1", devices=50, samples=40, features=6, seed=1).y)
    assert (labels[0] == labels[1]).float().mean() > 0.999
