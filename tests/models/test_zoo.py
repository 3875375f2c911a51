"""The paper's networks have the paper's sizes."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import feddyn
from feddyn.models import zoo
from feddyn.models.stacked import linear_layers


@pytest.mark.parametrize(
    ("model", "shape", "parameters"),
    [
        (zoo.linear(30, 5), (30,), 155),
        (zoo.mlp(784, 10), (1, 28, 28), 199_210),
        (zoo.mlp(784, 10, hidden=100), (1, 28, 28), 89_610),
        (zoo.cnn(10), (3, 32, 32), 815_892),
        (zoo.cnn(100), (3, 32, 32), 833_262),
        (zoo.cnn(10, channels=16), (3, 32, 32), 243_396),
        (zoo.resnet18(10), (3, 32, 32), 11_181_642),
        (zoo.resnet18(10, small_stem=True), (3, 32, 32), 11_173_962),
    ],
)
def test_sizes_and_outputs(model: nn.Module, shape: tuple[int, ...], parameters: int) -> None:
    assert feddyn.FlatModel(model).size == parameters
    assert model(torch.randn(2, *shape)).shape == (2, 100 if parameters == 833_262 else 5 if parameters == 155 else 10)


def test_the_lstm() -> None:
    assert feddyn.FlatModel(zoo.lstm()).size == 133_520
    assert zoo.lstm()(torch.randint(0, 80, (2, 80))).shape == (2, 80)


def test_pooling_before_relu_is_the_same_function() -> None:
    torch.manual_seed(0)
    model = zoo.cnn(10)
    layers = list(model)  # type: ignore[call-overload]
    layers[1], layers[2], layers[4], layers[5] = layers[2], layers[1], layers[5], layers[4]
    x = torch.randn(4, 3, 32, 32)
    assert torch.allclose(model(x), nn.Sequential(*layers)(x), atol=1e-6)


def test_logistic_regression_starts_at_zero() -> None:
    assert not bool(feddyn.FlatModel(zoo.linear(3, 2)).theta.any())


def test_logistic_regression_takes_images_and_has_a_closed_form() -> None:
    """Its vector is the weights and then the biases, as of a layer alone, whatever the shape of the samples."""
    model, layer = feddyn.FlatModel(zoo.linear(12, 2)), nn.Linear(12, 2)
    assert linear_layers(model) is not None
    model.theta.copy_(nn.utils.parameters_to_vector(layer.parameters()).detach())
    images = torch.randn(4, 3, 2, 2)
    for x in (images, images.flatten(1)):
        assert torch.equal(model(x), layer(images.flatten(1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: zoo.mlp(4, 2, hidden=0), "use the model 'linear'"),
        (lambda: zoo.mlp(4, 2, hidden=-1), "hidden must be a whole number of at least 1"),
        (lambda: zoo.mlp(4, 2, hidden=10**20), "hidden must be a whole number of at most"),
        (lambda: zoo.linear(10**20, 2), "linear: features"),
        (lambda: zoo.cnn(10**20), "cnn: classes"),
        (lambda: zoo.lstm(0), "lstm: classes"),
        (lambda: zoo.resnet18(10**20), "resnet18: classes"),
    ],
)
def test_sizes_that_no_network_has_are_refused(make: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(feddyn.InputError, match=message):
        make()
