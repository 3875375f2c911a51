"""A sweep gives in every setting what a run of that setting alone gives."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.models.flat import FlatModel, Loss
from feddyn.models.stacked import Perceptron, Vmapped, linear_layers
from feddyn.round.participation import Sampler
from feddyn.search.lockstep import Group, Lockstep

LR = [0.3, 0.1]
ADAPTIVE = ((0.01, 0.1), (0.9, 0.5), (0.99, 0.9), (0.001, 0.1))


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
        Group(feddyn.FedDynM(column(0.1, 0.5), column(0.5, 0.8)), 2),
        Group(feddyn.Scaffold(), 2),
        Group(feddyn.FedAvg(), 2),
        Group(feddyn.FedProx(column(0.2, 0.02)), 2),
        Group(feddyn.FedSplit(column(1.0, 3.0)), 2),
        Group(feddyn.FedDR(column(0.1, 0.5), column(1.0, 1.5)), 2),
        Group(feddyn.FedDC(column(0.1, 0.5)), 2),
        Group(feddyn.AdaBest(column(0.1, 0.02), column(0.5, 0.9)), 2),
        Group(feddyn.FedACG(column(0.5, 0.9), column(0.1, 0.0)), 2),
        Group(feddyn.FedAvgM(column(0.5, 0.9), column(1.0, 0.5)), 2),
        Group(feddyn.FedAdam(*(column(*pair) for pair in ADAPTIVE)), 2),
        Group(feddyn.FedYogi(*(column(*pair) for pair in ADAPTIVE)), 2),
    ]
    sweep = Lockstep(module, unbalanced, groups, feddyn.SGD(column(*LR * len(groups)), **solver), seed=4)
    sampler = Sampler(3, unbalanced.devices, 4, 4)
    for t in range(4):
        sweep.step(t, sampler.active(t))
    means, objectives = sweep.all_means(), sweep.figures()["objective"]
    singles: list[feddyn.Algorithm] = [
        feddyn.FedDyn(0.1),
        feddyn.FedDyn(0.5),
        feddyn.FedDynM(0.1, 0.5),
        feddyn.FedDynM(0.5, 0.8),
        feddyn.Scaffold(),
        feddyn.Scaffold(),
        feddyn.FedAvg(),
        feddyn.FedAvg(),
        feddyn.FedProx(0.2),
        feddyn.FedProx(0.02),
        feddyn.FedSplit(1.0),
        feddyn.FedSplit(3.0),
        feddyn.FedDR(0.1, 1.0),
        feddyn.FedDR(0.5, 1.5),
        feddyn.FedDC(0.1),
        feddyn.FedDC(0.5),
        feddyn.AdaBest(0.1, 0.5),
        feddyn.AdaBest(0.02, 0.9),
        feddyn.FedACG(0.5, 0.1),
        feddyn.FedACG(0.9, 0.0),
        feddyn.FedAvgM(0.5, 1.0),
        feddyn.FedAvgM(0.9, 0.5),
        *(method(*numbers) for method in (feddyn.FedAdam, feddyn.FedYogi) for numbers in zip(*ADAPTIVE, strict=True)),
    ]
    for i, algorithm in enumerate(singles):
        sgd = feddyn.SGD(LR[i % 2], **solver)
        run = feddyn.simulate(module, unbalanced, algorithm, sgd, participation=3, rounds=4, seed=4)
        assert torch.allclose(means[i], run.models["all"], rtol=0, atol=1e-12)
        assert float(objectives[i]) == pytest.approx(run.history[-1]["models"]["all"]["objective"], abs=1e-12)


@pytest.mark.parametrize("kind", ["adamw", "momentum"])
def test_a_sweep_of_other_solvers_equals_single_runs(unbalanced: Stored, kind: str) -> None:
    """AdamW reports no path, so SCAFFOLD is swept with momentum only."""

    def solver(lr: Any) -> feddyn.SGD | feddyn.AdamW:
        common: dict[str, Any] = {"epochs": 2, "batch_size": 8, "weight_decay": 0.01, "lr_decay": 0.9}
        return feddyn.AdamW(lr / 10, **common) if kind == "adamw" else feddyn.SGD(lr, **common, momentum=0.8)

    torch.manual_seed(0)
    module, other = nn.Linear(4, 3).double(), feddyn.FedAvg() if kind == "adamw" else feddyn.Scaffold()
    sweep = Lockstep(
        module,
        unbalanced,
        [Group(feddyn.FedDyn(column(0.1, 0.5)), 2), Group(other, 2)],
        solver(column(*LR * 2)),
        seed=4,
    )
    sampler = Sampler(3, unbalanced.devices, 4, 4)
    for t in range(4):
        sweep.step(t, sampler.active(t))
    for i, algorithm in enumerate((feddyn.FedDyn(0.1), feddyn.FedDyn(0.5), other, other)):
        run = feddyn.simulate(module, unbalanced, algorithm, solver(LR[i % 2]), participation=3, rounds=4, seed=4)
        assert torch.allclose(sweep.all_means()[i], run.models["all"], rtol=0, atol=1e-12)


def test_the_closed_form_is_chosen_where_it_holds() -> None:
    def layers(*parts: nn.Module, loss: Loss = nn.functional.cross_entropy) -> int:
        found = linear_layers(FlatModel(nn.Sequential(*parts) if len(parts) > 1 else parts[0], loss))
        return 0 if found is None else len(found)

    one, two = nn.Linear(3, 2), nn.Linear(2, 2)
    assert layers(one) == 1
    assert layers(nn.Flatten(), one, nn.ReLU(), two) == 2
    assert layers(one, loss=nn.functional.mse_loss) == 0
    assert layers(one, nn.ReLU()) == 0
    assert layers(one, two) == 0
    assert layers(one, nn.Tanh(), two) == 0
    assert layers(nn.Flatten(0), one) == 0
    assert layers(two, nn.ReLU(), two) == 0  # tied
    frozen = nn.Linear(3, 2)
    frozen.bias.requires_grad_(False)
    assert layers(frozen) == 0
    watched = nn.Linear(3, 2)
    watched.register_forward_hook(lambda *_: None)
    assert layers(watched) == 0


@pytest.mark.parametrize("stack", [(2, 3), (1, 1)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("hidden", [(), (6,), (6, 5)])
def test_closed_form_equals_autograd(hidden: tuple[int, ...], bias: bool, stack: tuple[int, int]) -> None:
    """Two settings, three devices, batches with weights of zero; and one of each, which steps without a gradient."""
    torch.manual_seed(0)
    sizes = (4, *hidden, 3)
    parts = [part for i, o in pairwise(sizes) for part in (nn.Linear(i, o, bias=bias), nn.ReLU())]
    model = FlatModel(nn.Sequential(*parts[:-1]).double())
    theta = torch.randn(*stack, model.size, dtype=torch.float64)
    x, y = torch.randn(1, stack[1], 5, 4, dtype=torch.float64), torch.randint(0, 3, (1, stack[1], 5))
    weight = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0], dtype=torch.float64).expand(1, stack[1], 5) / 4
    layers = linear_layers(model)
    assert layers is not None
    results = []
    for way in (Perceptron(layers, theta.clone()), Vmapped(model, theta.clone())):
        (batch,) = way.prepare(x, y, weight)
        gradient = way.gradient(batch).clone()
        way.descent(batch)(0.5)
        assert torch.allclose(way.theta, theta - 0.5 * gradient, rtol=0, atol=1e-14)
        results.append(gradient)
    closed, autograd = results
    assert torch.allclose(closed, autograd, rtol=0, atol=1e-14)
