"""With exact local solutions in float64 the methods do what their papers prove, and FedAvg what is known against it.

The problem is l2-regularised logistic regression on ten unequal, heterogeneous devices. The reference is the minimum of
the pooled loss SUM n_k f_k / N by Newton's method on the pooled data, independent of every federated method.
"""

import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored

DECAY = 0.1
ALPHA = 1.0


def optimum(model: nn.Module, population: Stored) -> torch.Tensor:
    pooled = population.pooled()
    exact = feddyn.Exact(weight_decay=DECAY)
    return feddyn.simulate(model, pooled, feddyn.FedAvg(), exact, participation=1.0, rounds=1).models["server"]


def gradient(model: nn.Module, population: Stored, device: int, theta: torch.Tensor) -> torch.Tensor:
    """grad f_k(theta), weight decay included."""
    flat = feddyn.FlatModel(model)
    flat.theta.copy_(theta)
    return flat.gradient(*population.samples(device)) + DECAY * theta


def smoothness(population: Stored) -> float:
    """An upper bound of L for every device: the softmax Hessian is at most 1/2 of the features' second moments."""
    largest = 0.0
    for k in range(population.devices):
        x = torch.cat([population.samples(k)[0], torch.ones(population.size(k), 1)], dim=1)
        largest = max(largest, float(torch.linalg.matrix_norm(x.T @ x / len(x), 2)))
    return largest / 2 + DECAY


def distance(
    model: nn.Module,
    population: Stored,
    algorithm: feddyn.Algorithm,
    solver: feddyn.Solver,
    participation: float | int,
    rounds: int,
) -> float:
    run = feddyn.simulate(
        model,
        population,
        algorithm,
        solver,
        participation=participation,
        rounds=rounds,
        evaluation=feddyn.Evaluation(every=rounds),
    )
    return float((run.models["server"] - optimum(model, population)).norm())


@pytest.mark.parametrize(("participation", "rounds"), [(1.0, 250), (2, 600)])
def test_feddyn_reaches_the_optimum_and_keeps_its_invariants(
    logistic: nn.Module, unbalanced: Stored, participation: float | int, rounds: int
) -> None:
    """Every round: h = (1/m) SUM share_k lambda_k to 1e-12, and lambda_k = grad f_k(theta_k) for all ever active."""
    plan = feddyn.Plan(
        logistic,
        unbalanced,
        feddyn.FedDyn(ALPHA),
        feddyn.Exact(weight_decay=DECAY),
        participation,
        rounds,
        evaluation=feddyn.Evaluation(every=rounds),
    )
    simulation = feddyn.Simulation(plan)
    federation = simulation.federation
    m = unbalanced.devices
    for line in simulation:
        slopes = {k: federation.state(k)["lambda"] for k in federation.ever_active}
        mean = sum(unbalanced.share(k) * slope for k, slope in slopes.items()) / m
        scale = max(float(slope.norm()) for slope in slopes.values())
        assert float((federation.server["h"] - mean).norm()) <= 1e-12 * scale
        for k in line["active"]:
            truth = gradient(logistic, unbalanced, k, federation.latest(k))
            assert torch.allclose(slopes[k], truth, rtol=0, atol=1e-10)
    assert federation.ever_active == list(range(m))
    for k, slope in slopes.items():
        assert torch.allclose(slope, gradient(logistic, unbalanced, k, federation.latest(k)), rtol=0, atol=1e-10)
    for vector in federation.models.values():
        assert float((vector - optimum(logistic, unbalanced)).norm()) <= 1e-8


def test_fedavg_with_exact_solutions_is_biased(logistic: nn.Module, unbalanced: Stored) -> None:
    """It settles, after one round, at the mean of the devices' own optima: far from the optimum of the pooled loss."""
    exact = feddyn.Exact(weight_decay=DECAY)
    once = distance(logistic, unbalanced, feddyn.FedAvg(), exact, 1.0, 1)
    later = distance(logistic, unbalanced, feddyn.FedAvg(), exact, 1.0, 5)
    assert once == pytest.approx(later, rel=1e-9)
    assert later == pytest.approx(0.46, abs=0.005)
    assert float(optimum(logistic, unbalanced).norm()) == pytest.approx(0.74, abs=0.005)


def test_fedprox_is_biased_and_without_penalty_is_fedavg(logistic: nn.Module, unbalanced: Stored) -> None:
    exact = feddyn.Exact(weight_decay=DECAY)
    runs = [
        feddyn.simulate(logistic, unbalanced, method, exact, participation=3, rounds=4)
        for method in (feddyn.FedAvg(), feddyn.FedProx(0.0))
    ]
    for name in ("server", "active", "all"):
        assert torch.equal(runs[0].models[name], runs[1].models[name])
    assert distance(logistic, unbalanced, feddyn.FedProx(ALPHA), exact, 1.0, 40) > 0.1


@pytest.mark.parametrize("mean", ["act", "all"])
def test_fedsplit_reaches_the_optimum_with_all_devices(logistic: nn.Module, unbalanced: Stored, mean: str) -> None:
    method = feddyn.FedSplit(1.0, mean)  # type: ignore[arg-type]
    assert distance(logistic, unbalanced, method, feddyn.Exact(weight_decay=DECAY), 1.0, 150) <= 1e-8


def test_feddyn_one_gd_reaches_the_optimum_with_all_devices(logistic: nn.Module, unbalanced: Stored) -> None:
    method = feddyn.FedDyn(2 * smoothness(unbalanced))
    assert distance(logistic, unbalanced, method, feddyn.OneStep(weight_decay=DECAY), 1.0, 1000) <= 1e-8


def test_scaffold_reaches_the_optimum_with_all_devices(logistic: nn.Module, unbalanced: Stored) -> None:
    """Full-batch steps with K * lr = 1/L."""
    steps = 4
    sgd = feddyn.SGD(1 / (steps * smoothness(unbalanced)), steps=steps, weight_decay=DECAY)
    assert distance(logistic, unbalanced, feddyn.Scaffold(), sgd, 1.0, 600) <= 1e-8


def test_distributed_sgd_is_gradient_descent_on_the_pooled_loss(logistic: nn.Module, unbalanced: Stored) -> None:
    """One full gradient step a device, averaged by n_k, is one step on the pooled data."""
    step = feddyn.OneStep(0.3, weight_decay=DECAY)
    federated = feddyn.simulate(logistic, unbalanced, feddyn.FedAvg(), step, participation=1.0, rounds=20)
    central = feddyn.simulate(logistic, unbalanced.pooled(), feddyn.FedAvg(), step, participation=1.0, rounds=20)
    assert torch.allclose(federated.models["server"], central.models["server"], rtol=0, atol=1e-12)


def test_feddr_reaches_the_optimum_with_few_devices(logistic: nn.Module, unbalanced: Stored) -> None:
    exact = feddyn.Exact(weight_decay=DECAY)
    assert distance(logistic, unbalanced, feddyn.FedDR(ALPHA, 1.6), exact, 2, 900) <= 1e-8


def test_feddc_reaches_the_optimum_with_few_devices(logistic: nn.Module, unbalanced: Stored) -> None:
    """Four full-batch steps a round, short enough for the smallest device's penalty."""
    stiffest = smoothness(unbalanced) + ALPHA / min(unbalanced.share(k) for k in range(unbalanced.devices))
    sgd = feddyn.SGD(1 / (4 * stiffest), steps=4, weight_decay=DECAY)
    assert distance(logistic, unbalanced, feddyn.FedDC(ALPHA), sgd, 2, 1500) <= 1e-8
