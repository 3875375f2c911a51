"""The paper's networks as functions: each is stated again with plain tensor arithmetic on the model's own parameters.

Parameters are moved off their initial values first, so that biases, and GroupNorm's scales of one and shifts of zero,
show; in float64, where two ways to compute the same function agree to 1e-9.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d

import feddyn
from feddyn.errors import InputError
from feddyn.models import zoo
from feddyn.models.standardised import standardise


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


def written_out(weight: torch.Tensor) -> torch.Tensor:
    """Each filter minus its mean, over its standard deviation and the square root of its size."""
    filters = [(one - one.mean()) / (one.std(correction=0) * one.numel() ** 0.5 + 1e-5) for one in weight]
    return torch.stack(filters)


@pytest.mark.parametrize(
    "model", [zoo.cnn(10, standardised=True), zoo.resnet18(10, small_stem=True, standardised=True)]
)
def test_standardised_networks_are_the_plain_ones_with_other_filters(model: nn.Module) -> None:
    """Put the standardised filters into the plain network, and it is the same function; in all convolutions."""
    model, _ = moved(model)
    plain = zoo.cnn(10) if len(model) == 12 else zoo.resnet18(10, small_stem=True)  # type: ignore[arg-type]
    named = {k: written_out(v) if v.dim() == 4 else v for k, v in model.state_dict().items()}
    plain.double().load_state_dict(named)
    x = images(3, 32, 32)
    assert same(model, x, plain(x).detach())


def test_standardised_filters_do_not_depend_on_their_mean_and_length() -> None:
    model, _ = moved(zoo.cnn(10, standardised=True))
    x = images(3, 32, 32)
    before = model(x).detach()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 4:
                parameter.mul_(100.0).add_(3.0)
    with torch.no_grad():
        assert torch.allclose(model(x), before, rtol=1e-3, atol=1e-4)


def test_standardising_keeps_the_parameters_and_the_initial_values() -> None:
    torch.manual_seed(0)
    plain = zoo.cnn(10)
    torch.manual_seed(0)
    other = zoo.cnn(10, standardised=True)
    pairs = zip(plain.named_parameters(), other.named_parameters(), strict=True)
    assert all(a == b and torch.equal(p, q) for (a, p), (b, q) in pairs)
    assert type(plain[0]) is nn.Conv2d  # type: ignore[index]


def test_a_model_without_convolutions_cannot_be_standardised() -> None:
    with pytest.raises(InputError, match=r"Linear has no nn\.Conv2d whose weights could be standardised"):
        standardise(nn.Linear(2, 2))


def test_standardised_networks_train_in_stacks_as_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 3, 8, 8, generator=generator), torch.randint(0, 3, (60,), generator=generator)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    population = feddyn.Population.from_arrays(x, y, torch.arange(60) // 15)
    one, many = (
        feddyn.simulate(
            standardise(model).double(),
            population,
            feddyn.FedDyn(0.1),
            feddyn.SGD(0.1, epochs=1, batch_size=5),
            participation=4,
            rounds=2,
            stack=stack,
            workers=1,
        )
        for stack in (1, 4)
    )
    assert torch.allclose(one.models["server"], many.models["server"], rtol=0, atol=1e-10)
