"""Batch norm becomes group norm in one line."""

import pytest
import torch
from torch import nn

import feddyn
from feddyn.models import group_norm
from feddyn.models.flat import FlatModel


def network() -> nn.Module:
    inner = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, eps=1e-3), nn.ReLU())
    return nn.Sequential(inner, nn.Flatten(), nn.LazyLinear(5), nn.BatchNorm1d(5, affine=False), nn.Linear(5, 2))


def test_every_layer_is_converted_and_keeps_its_affine_parameters() -> None:
    model = network()
    model(torch.randn(4, 3, 5, 5))
    nn.init.normal_(model[0][1].weight)  # type: ignore[index]
    with pytest.raises(feddyn.InputError, match=r"feddyn\.models\.group_norm\(model\) makes it GroupNorm"):
        FlatModel(model)
    converted = group_norm(model)
    norm = converted[0][1]  # type: ignore[index]
    assert isinstance(norm, nn.GroupNorm)
    assert (norm.num_groups, norm.eps) == (2, 1e-3)
    assert torch.equal(norm.weight, model[0][1].weight)  # type: ignore[index]
    assert norm.weight is not model[0][1].weight  # type: ignore[index]
    assert converted[3].weight is None  # type: ignore[index]
    assert converted[3].num_groups == 1  # type: ignore[index]
    assert isinstance(model[0][1], nn.BatchNorm2d)  # type: ignore[index]
    assert [name for name, _ in converted.named_parameters()] == [name for name, _ in model.named_parameters()]
    x = torch.randn(4, 3, 5, 5)
    assert FlatModel(converted)(x).shape == (4, 2)


def test_of_a_layer_alone_it_is_group_norm_as_written_out() -> None:
    """(x - mean) / sqrt(var + eps) * weight + bias, with the mean and the variance of a sample's group."""
    layer = nn.BatchNorm2d(4).eval()
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    x = torch.randn(2, 4, 3, 3)
    groups = x.view(2, 2, -1)
    normal = (groups - groups.mean(-1, keepdim=True)) / (groups.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
    expected = normal.view_as(x) * layer.weight[:, None, None] + layer.bias[:, None, None]
    assert torch.allclose(group_norm(layer)(x), expected, atol=1e-6)


def test_what_cannot_be_converted() -> None:
    with pytest.raises(feddyn.InputError, match="has no size yet"):
        group_norm(nn.LazyBatchNorm1d())
    with pytest.raises(feddyn.InputError, match="at least 1"):
        group_norm(network(), 0)
