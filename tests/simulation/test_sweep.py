"""A sweep gives in every setting what a run of that setting alone gives."""

from typing import Any

import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.models.flat import FlatModel
from feddyn.models.stacked import LinearSoftmax, Stacked, Vmapped, stacked
from feddyn.simulation.participation import Sampler
from feddyn.simulation.sweep import Group, Sweep

LR = [0.3, 0.1]


def column(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[:, None, None]


@pytest.mark.parametrize(("length", "batch"), [({"epochs": 2}, 8), ({"steps": 7}, 8), ({"epochs": 3}, None)])
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_a_sweep_equals_single_runs(
    unbalanced: Stored, network: str, length: dict[str, int], batch: int | None, clip: float | None
) -> None:
    """Unequal devices, 3 of 10 active, all methods in one stack; float64, so only the order of sums differs."""
    torch.manual_seed(0)
    hidden = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    module = (nn.Linear(4, 3) if network == "linear" else hidden).double()
    solver: dict[str, Any] = {"batch_size": batch, "weight_decay": 0.01, "clip": clip, "lr_decay": 0.9, **length}
    groups = [
        Group(feddyn.FedDyn(column(0.1, 0.5)), 2),
        Group(feddyn.Scaffold(), 2),
        Group(feddyn.FedAvg(), 2),
        Group(feddyn.FedProx(column(0.2, 0.02)), 2),
        Group(feddyn.FedSplit(column(1.0, 3.0)), 2),
    ]
    sweep = Sweep(module, unbalanced, groups, feddyn.SGD(column(*LR * 5), **solver), seed=4)
    sampler = Sampler(3, unbalanced.devices, 4, 4)
    for t in range(4):
        sweep.step(t, sampler.active(t))
    means, objectives = sweep.all_means(), sweep.objectives()
    singles: list[feddyn.Algorithm] = [
        feddyn.FedDyn(0.1),
        feddyn.FedDyn(0.5),
        feddyn.Scaffold(),
        feddyn.Scaffold(),
        feddyn.FedAvg(),
        feddyn.FedAvg(),
        feddyn.FedProx(0.2),
        feddyn.FedProx(0.02),
        feddyn.FedSplit(1.0),
        feddyn.FedSplit(3.0),
    ]
    for i, algorithm in enumerate(singles):
        sgd = feddyn.SGD(LR[i % 2], **solver)
        run = feddyn.simulate(module, unbalanced, algorithm, sgd, participation=3, rounds=4, seed=4)
        assert torch.allclose(means[i], run.models["all"], rtol=0, atol=1e-12)
        assert float(objectives[i]) == pytest.approx(run.history[-1]["models"]["all"]["objective"], abs=1e-12)


def test_the_closed_form_is_chosen_where_it_holds() -> None:
    assert isinstance(stacked(FlatModel(nn.Linear(3, 2))), LinearSoftmax)
    assert isinstance(stacked(FlatModel(nn.Linear(3, 2), nn.functional.mse_loss)), Vmapped)
    frozen = nn.Linear(3, 2)
    frozen.bias.requires_grad_(False)
    assert isinstance(stacked(FlatModel(frozen)), Vmapped)


@pytest.mark.parametrize("bias", [True, False])
def test_closed_form_equals_autograd(bias: bool) -> None:
    """Two settings, three devices, batches with weights of zero."""
    torch.manual_seed(0)
    model = FlatModel(nn.Linear(4, 3, bias=bias).double())
    theta = torch.randn(2, 3, model.size, dtype=torch.float64)
    x, y = torch.randn(1, 3, 5, 4, dtype=torch.float64), torch.randint(0, 3, (1, 3, 5))
    weight = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0], dtype=torch.float64).expand(1, 3, 5) / 4
    results = []
    for way in (LinearSoftmax(model), Vmapped(model)):
        assert isinstance(way, Stacked)
        (batch,) = way.prepare(x, y, weight, theta)
        results.append(way.gradient(theta, batch))
    closed, autograd = results
    assert torch.allclose(closed, autograd, rtol=0, atol=1e-14)
