"""The paper's networks as functions: each is stated again with plain tensor arithmetic on the model's own parameters.

Parameters are moved off their initial values first, so that biases, and GroupNorm's scales of one and shifts of zero,
show; in float64, where two ways to compute the same function agree to 1e-9.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d

from feddyn.models import zoo


def moved(model: nn.Module) -> tuple[nn.Module, Iterator[torch.Tensor]]:
    """The model in float64 with random numbers added to its parameters, and these in their order."""
    generator, model = torch.Generator().manual_seed(1), model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.05)
    return model, (parameter.detach() for parameter in model.parameters())


def images(*shape: int) -> torch.Tensor:
    return torch.randn(2, *shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def affine(x: torch.Tensor, parameters: Iterator[torch.Tensor]) -> torch.Tensor:
    """W x + b."""
    return x @ next(parameters).T + next(parameters)


def same(model: nn.Module, x: torch.Tensor, expected: torch.Tensor) -> bool:
    with torch.no_grad():
        return torch.allclose(model(x), expected, rtol=0, atol=1e-9)


def test_logistic_regression() -> None:
    model, parameters = moved(zoo.linear(30, 5))
    x = images(30)
    assert same(model, x, affine(x, parameters))


@pytest.mark.parametrize("hidden", [200, 100])
def test_the_perceptron(hidden: int) -> None:
    model, parameters = moved(zoo.mlp(784, 10, hidden))
    x = images(1, 28, 28)
    one = affine(x.reshape(2, 784), parameters).clamp(min=0)
    two = affine(one, parameters).clamp(min=0)
    assert (one.shape, two.shape) == ((2, hidden), (2, hidden))
    assert same(model, x, affine(two, parameters))


def test_the_convolutional_network() -> None:
    """5x5 convolution without padding, ReLU, the maximum of each 2x2 square; twice; then three affine layers."""
    model, parameters = moved(zoo.cnn(10))
    x = inner = images(3, 32, 32)
    for side in (14, 5):
        inner = conv2d(inner, next(parameters), next(parameters)).clamp(min=0)
        inner = inner.reshape(2, 64, side, 2, side, 2).amax((3, 5))
    inner = affine(inner.reshape(2, 1600), parameters).clamp(min=0)
    inner = affine(inner, parameters).clamp(min=0)
    assert same(model, x, affine(inner, parameters))


def test_the_lstm() -> None:
    """The equations of two layers, written out, over every character; the last state of the second layer counts:

    i, f, o = sigmoid(W x + U h + b) each,  g = tanh(W x + U h + b),  c <- f c + i g,  h <- o tanh(c)
    """
    model, parameters = moved(zoo.lstm(80))
    tokens = torch.randint(0, 80, (2, 12), generator=torch.Generator().manual_seed(3))
    sequence = next(parameters)[tokens]
    for _ in range(2):
        weight, recurrent, bias, more = (next(parameters) for _ in range(4))
        h = c = torch.zeros(2, 100, dtype=torch.float64)
        states = []
        for x in sequence.unbind(1):
            i, f, g, o = (x @ weight.T + h @ recurrent.T + bias + more).split(100, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        sequence = torch.stack(states, 1)
    assert same(model, tokens, affine(sequence[:, -1], parameters))


def normed(x: torch.Tensor, parameters: Iterator[torch.Tensor]) -> torch.Tensor:
    """Each half of a sample's channels to mean 0 and variance 1, then each channel scaled and shifted."""
    halves = x.reshape(len(x), 2, -1)
    halves = (halves - halves.mean(2, keepdim=True)) / (halves.var(2, correction=0, keepdim=True) + 1e-5).sqrt()
    scale, shift = (next(parameters)[:, None, None] for _ in range(2))
    return halves.reshape(x.shape) * scale + shift


@pytest.mark.parametrize("small_stem", [False, True])
def test_resnet18(small_stem: bool) -> None:
    """He et al.'s 18 layers with GroupNorm: a stem; four stages of two blocks, relu(conv norm relu conv norm + x), of
    which the later stages' first halve the image, x by a 1x1 convolution; the mean over the image; an affine layer."""
    model, parameters = moved(zoo.resnet18(10, small_stem))
    x = images(3, 16, 16)
    stride, padding = (1, 1) if small_stem else (2, 3)
    inner = normed(conv2d(x, next(parameters), stride=stride, padding=padding), parameters).clamp(min=0)
    if not small_stem:
        inner = nn.functional.max_pool2d(inner, 3, stride=2, padding=1)
    for stage, first in ((stage, first) for stage in range(4) for first in (True, False)):
        halving = first and stage > 0
        one = normed(conv2d(inner, next(parameters), stride=2 if halving else 1, padding=1), parameters).clamp(min=0)
        two = normed(conv2d(one, next(parameters), padding=1), parameters)
        if halving:
            inner = normed(conv2d(inner, next(parameters), stride=2), parameters)
        inner = (two + inner).clamp(min=0)
    assert same(model, x, affine(inner.mean((2, 3)), parameters))
