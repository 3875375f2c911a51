"""`suggest_alpha` finds L where it is known, and refuses what it cannot judge in one sentence."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import feddyn
from feddyn.models import zoo


def regression(sizes: list[int]) -> tuple[feddyn.Population, list[float]]:
    """Devices of least squares with features of their own scale, and the curvature 2 |X^T X| / n of each loss."""
    random = torch.Generator().manual_seed(0)
    x = [(k + 1) * torch.randn(n, 4, generator=random, dtype=torch.float64) for k, n in enumerate(sizes)]
    owner = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    data = torch.cat(x)
    curvatures = [2 * float(torch.linalg.matrix_norm(part.T @ part / len(part), 2)) for part in x]
    return feddyn.Population.from_arrays(data, data[:, :1], owner), curvatures


def test_it_is_the_largest_curvature_times_share_of_any_device() -> None:
    sizes = [300, 40, 700, 90]
    population, curvatures = regression(sizes)
    model = nn.Linear(4, 1, bias=False).double()
    found = feddyn.suggest_alpha(
        model,
        population,
        0.5,
        loss=nn.functional.mse_loss,
        weight_decay=0.2,
        samples=1000,
        tolerance=1e-6,
        iterations=500,
    )
    shares = [4 * n / sum(sizes) for n in sizes]
    expected = [share * (curvature + 0.2) for share, curvature in zip(shares, curvatures, strict=True)]
    assert pytest.approx(max(expected), rel=1e-3) == found.L
    assert found.device == str(expected.index(max(expected)))
    assert (found.m, found.P, found.devices) == (4, 2, 4)
    assert found.theory["FedDyn, convex"] == pytest.approx(30 * found.L * math.sqrt(2))
    assert found.theory["FedDyn, nonconvex"] == pytest.approx(60 * found.L)
    assert found.theory["FedDynOneGD, nonconvex"] == pytest.approx(100 * found.L)
    assert found.theory["FedDyn, strongly convex"] == pytest.approx(30 * found.L)
    assert found.exact == pytest.approx((0.01 * found.L, 3 * found.L))
    text = str(found)
    assert f"the largest, on device {found.device}, of 4 tried" in text
    assert "theory, 4 devices of which 2 are active" in text
    assert "  FedDyn, convex: alpha = " in text
    assert "0.001 to 0.1" in text
    assert "are few" not in text
    assert "2 of 100 are few: search up to 0.25, and try FedDynM" in str(replace(found, m=100))


def test_negative_curvature_counts_by_its_size() -> None:
    """L_k = -3 theta^2/2 + const: |eigenvalue| 3, and no strongly convex theorem without weight decay."""
    population = feddyn.Population.from_arrays(torch.ones(6, 1), torch.zeros(6, 1), [0, 0, 0, 1, 1, 1])
    model = nn.Linear(1, 1, bias=False)
    found = feddyn.suggest_alpha(model, population, 2, loss=lambda out, y: -1.5 * (out - y).square().mean())
    assert pytest.approx(3, rel=1e-5) == found.L
    assert "FedDyn, strongly convex" not in found.theory


def test_weight_decay_is_curvature_too() -> None:
    """Of -3 it leaves 2, not 4; of a flat loss the decay itself."""
    population = feddyn.Population.from_arrays(torch.ones(6, 1), torch.zeros(6, 1), [0, 0, 0, 1, 1, 1])
    model = nn.Linear(1, 1, bias=False)
    bent = feddyn.suggest_alpha(
        model, population, 2, loss=lambda out, y: -1.5 * (out - y).square().mean(), weight_decay=1.0
    )
    assert pytest.approx(2, rel=1e-5) == bent.L
    assert bent.theory["FedDyn, strongly convex"] == pytest.approx(60, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_one_large_curvature_among_many_is_found(seed: int) -> None:
    """2.5 in one of 2,000 directions and 1 in the others, 2 / n |x|^2 of samples along the axes: a random start hardly
    sees it, and the first steps of the power iteration rise by less than the tolerance."""
    x = torch.diag(torch.full((2000,), 1000**0.5))
    x[0] *= 2.5**0.5
    population = feddyn.Population.from_arrays(x, torch.zeros(2000, 1), [0] * 2000)
    model = nn.Linear(2000, 1, bias=False)
    found = feddyn.suggest_alpha(model, population, 1, loss=nn.functional.mse_loss, samples=2000, seed=seed)
    assert pytest.approx(2.5, rel=0.02) == found.L


def test_samples_are_drawn_at_random() -> None:
    """Not the first ones, which of sorted data are all alike."""
    x = torch.cat([torch.full((500, 1), 0.1), torch.full((500, 1), 10.0)])
    population = feddyn.Population.from_arrays(x, torch.zeros(1000, 1), [0] * 1000)
    found = feddyn.suggest_alpha(nn.Linear(1, 1, bias=False), population, 1, loss=nn.functional.mse_loss, samples=100)
    assert pytest.approx(100, rel=0.3) == found.L


def test_the_same_arguments_give_the_same_advice_and_nothing_is_changed() -> None:
    population = feddyn.synthetic("type1", seed=0)
    model = zoo.linear(30, 5)
    before = [p.clone() for p in model.parameters()]
    first, second = (feddyn.suggest_alpha(model, population, 0.1, devices=3, seed=4) for _ in range(2))
    assert first == second
    assert first.devices == 3
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))


def test_networks_with_convolutions_recurrence_and_dropout_have_a_curvature() -> None:
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 10, (8,), generator=random)
    owner = [0] * 4 + [1] * 4
    images = feddyn.Population.from_arrays(torch.randn(8, 3, 32, 32, generator=random), labels, owner)
    text = feddyn.Population.from_arrays(torch.randint(0, 80, (8, 20), generator=random), labels, owner)
    flat = feddyn.Population.from_arrays(torch.randn(8, 6, generator=random), labels, owner)
    dropout = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 10))
    for model, population in ((zoo.cnn(10), images), (zoo.lstm(), text), (dropout, flat)):
        advice = feddyn.suggest_alpha(model, population, 1.0, iterations=4)
        assert 0 < advice.L < 1e4
    assert dropout.training


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"devices": 0}, "suggest_alpha: devices must be a whole number of at least 1, not 0"),
        ({"samples": 1.5}, "suggest_alpha: samples must be a whole number of at least 1, not 1.5"),
        ({"weight_decay": -1.0}, "suggest_alpha: weight_decay must be a finite number of at least 0, not -1.0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], sentence: str) -> None:
    population, _ = regression([10, 10])
    with pytest.raises(feddyn.InputError) as error:
        feddyn.suggest_alpha(nn.Linear(4, 1).double(), population, 1.0, **options)  # type: ignore[arg-type]
    assert str(error.value) == sentence


def test_what_has_no_curvature_is_refused() -> None:
    population, _ = regression([10, 10])
    model = nn.Linear(4, 1).double()
    with pytest.raises(feddyn.InputError, match="participation cannot be 3 of 2 devices"):
        feddyn.suggest_alpha(model, population, 3, loss=nn.functional.mse_loss)
    with pytest.raises(feddyn.FeddynError, match="no curvature at the model's start"):
        feddyn.suggest_alpha(model, population, 1.0, loss=nn.functional.l1_loss)
    with pytest.raises(feddyn.InputError, match="cross-entropy takes classes as whole numbers"):
        feddyn.suggest_alpha(model, population, 1.0)
    with pytest.raises(feddyn.InputError, match="the model does not fit the devices' samples"):
        feddyn.suggest_alpha(nn.Linear(7, 1).double(), population, 1.0, loss=nn.functional.mse_loss)
    with torch.no_grad():
        model.weight[0, 0] = float("nan")
    with pytest.raises(feddyn.InputError, match=r"the curvature of device . is not finite"):
        feddyn.suggest_alpha(model, population, 1.0, loss=lambda out, y: (out - y).pow(4).mean())


def test_the_range_for_sgd_follows_its_steps() -> None:
    """alpha * lr * steps as in the paper's: with 20 samples, 5 epochs and batches of 10 there are ten steps of 0.1."""
    population = feddyn.synthetic("type2", devices=3, samples=20, features=4, classes=3)
    model, solver = nn.Linear(4, 3).double(), feddyn.SGD(0.1, epochs=5, batch_size=10)
    found = feddyn.suggest_alpha(model, population, 2, solver=solver)
    assert found.reach == pytest.approx(1.0)
    assert "this SGD, whose lr * steps is 1: alpha = 0.05 to 2" in str(found)
    assert feddyn.suggest_alpha(model, population, 2, solver=feddyn.Exact()).reach is None
    assert "this SGD" not in str(feddyn.suggest_alpha(model, population, 2))
