"""Any nn.Module as a function of one vector."""

import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.models.flat import with_parameters


class Tied(nn.Module):
    """The output layer shares the embedding's weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.output = nn.Linear(4, 7, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.output(self.embedding(x).mean(1)))


class Counting(nn.Module):
    """A layer of somebody's own that keeps running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.seen = nn.Buffer(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(len(x))
        return torch.as_tensor(self.linear(x))


def test_parameters_are_views_and_gradients_are_flat() -> None:
    model = feddyn.FlatModel(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    assert model.size == 3 * 4 + 4 + 4 * 2 + 2
    model.theta.fill_(0.5)
    assert all(bool((p == 0.5).all()) for p in model.module.parameters())
    x, y = torch.randn(6, 3), torch.randint(0, 2, (6,))
    grad = model.gradient(x, y)
    loss = nn.functional.cross_entropy(model.module(x), y)
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.module.parameters()))])
    assert torch.allclose(grad, expected)
    assert torch.allclose(model.gradient(x, y), expected)  # and not accumulated


def test_the_order_is_pytorchs_and_the_users_model_is_left_alone() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    before = nn.utils.parameters_to_vector(module.parameters()).clone()
    model = feddyn.FlatModel(module)
    assert torch.equal(model.theta, before)
    model.theta.zero_()
    assert torch.equal(nn.utils.parameters_to_vector(module.parameters()), before)
    assert torch.equal(nn.utils.parameters_to_vector(with_parameters(module, model.theta).parameters()), model.theta)


def test_the_function_is_the_module() -> None:
    model = feddyn.FlatModel(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    x, theta = torch.randn(5, 3), torch.randn(model.size)
    output = model.function(theta, x)
    model.theta.copy_(theta)
    assert torch.allclose(output, model.module(x))


def test_tied_parameters_count_once() -> None:
    model = feddyn.FlatModel(Tied())
    assert model.size == 28
    x, y = torch.randint(0, 7, (5, 3)), torch.randint(0, 7, (5,))
    theta = model.theta.clone().requires_grad_()
    (expected,) = torch.autograd.grad(nn.functional.cross_entropy(model.function(theta, x), y), theta)
    assert torch.allclose(model.gradient(x, y), expected, atol=1e-7)
    population = feddyn.Population.from_arrays(x, y, [0, 0, 1, 1, 1])
    sgd = feddyn.SGD(0.1, epochs=1)
    run = feddyn.simulate(Tied(), population, feddyn.FedDyn(0.1), sgd, participation=1.0, rounds=2)
    trained = run.model("server")
    assert isinstance(trained, Tied)
    assert trained.output.weight is trained.embedding.weight


def test_frozen_parameters_stay() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    model = feddyn.FlatModel(module)
    assert model.size == 10
    assert torch.equal(next(model.module.parameters()), next(module.parameters()))


@pytest.mark.parametrize(
    ("layer", "name"),
    [(nn.BatchNorm1d(4), "1 (BatchNorm1d)"), (nn.InstanceNorm1d(4, track_running_stats=True), "1 (Inst")],
)
def test_running_statistics_are_refused(layer: nn.Module, name: str) -> None:
    with pytest.raises(feddyn.InputError, match="GroupNorm") as refused:
        feddyn.FlatModel(nn.Sequential(nn.Linear(3, 4), layer))
    assert name in str(refused.value)


def test_running_statistics_of_somebodys_own_are_refused(unbalanced: Stored) -> None:
    with pytest.raises(feddyn.InputError, match="buffer 'seen'"):
        feddyn.simulate(Counting(), unbalanced, feddyn.FedAvg(), feddyn.SGD(0.1, epochs=1), participation=1, rounds=1)


def test_models_that_cannot_be_one_vector_are_refused() -> None:
    with pytest.raises(feddyn.InputError, match="no trainable parameters"):
        feddyn.FlatModel(nn.ReLU())
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    half, short, nowhere = nn.Linear(2, 2).half(), nn.Linear(2, 2).bfloat16(), nn.Linear(2, 2, device="meta")
    for model in (mixed, half, short, nowhere):
        with pytest.raises(feddyn.InputError, match="must be all float32 or all float64, on one device"):
            feddyn.FlatModel(model)
