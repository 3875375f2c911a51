r"""Gradients of many copies of a model, each with its own parameters and batch, as one batched computation.

Batches come as x (steps, devices, batch, ...), y (steps, devices, batch) and sample weights that add up to 1 over each
batch (or to 0: no samples); parameters as theta (settings, devices, d). All settings share the devices' batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import nn
from torch.func import vmap

from feddyn.algorithms.base import Vector
from feddyn.models.flat import FlatModel


class Stacked(ABC):
    """The two halves of a stacked gradient: what can be done for many steps at once, and the rest, step by step."""

    model: FlatModel

    @abstractmethod
    def prepare(self, x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, theta: Vector) -> Sequence[Any]:
        """Batches for `gradient`, one for each step."""

    @abstractmethod
    def gradient(self, theta: Vector, batch: Any) -> Vector:
        """The gradients of the weighted losses, in the shape of theta. Valid until the next call."""


@final
class Vmapped(Stacked):
    """Any module, by vmap of its forward pass; the backward pass is ordinary autograd of the sum of the losses."""

    def __init__(self, model: FlatModel):
        self.model = model

    def prepare(self, x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, theta: Vector) -> Sequence[Any]:
        return list(zip(x, y, weight, strict=True))

    def gradient(self, theta: Vector, batch: Any) -> Vector:
        x, y, weight = batch
        leaf = theta.detach().requires_grad_()
        output = vmap(vmap(self.model.function), in_dims=(0, None))(leaf, x)
        (grad,) = torch.autograd.grad((self._losses(output, y) * weight).sum(), leaf)
        return grad

    def _losses(self, output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss of every single sample, from a loss that takes the mean over a batch."""

        def single(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.model.loss(output[None], y[None])

        return vmap(vmap(vmap(single)), in_dims=(0, None))(output, y)


@final
class LinearSoftmax(Stacked):
    r"""Multiclass logistic regression in closed form, several times faster than autograd on models this small.

    With logits z = W x + b and p = softmax(z), the gradient of cross-entropy is (p - onehot(y)) x^T for W and
    p - onehot(y) for b. Classes stand before samples, so that the softmax runs along contiguous memory.
    """

    def __init__(self, model: FlatModel):
        assert isinstance(model.module, nn.Linear)
        self.model, self.module = model, model.module

    def prepare(self, x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, theta: Vector) -> Sequence[Any]:
        settings = len(theta)
        onehot = nn.functional.one_hot(y, self.module.out_features).mT * weight[..., None, :]
        parts = (x, onehot, weight[..., None, :])
        stacked = [p[:, None].expand(-1, settings, *p.shape[1:]).flatten(1, 2).contiguous() for p in parts]
        return list(zip(*(part.unbind() for part in stacked), strict=True))

    def gradient(self, theta: Vector, batch: Any) -> Vector:
        x, onehot, weight = batch
        cut = self.module.weight.numel()
        flat = theta.flatten(0, 1)
        w = flat[:, :cut].unflatten(1, self.module.weight.shape)
        bias = flat[:, cut:, None] if self.module.bias is not None else flat.new_zeros(())
        residual = torch.baddbmm(bias, w, x.mT).softmax(1).mul_(weight).sub_(onehot)
        grad = torch.empty_like(flat)
        grad[:, :cut].unflatten(1, self.module.weight.shape).copy_(torch.bmm(residual, x))
        if self.module.bias is not None:
            torch.sum(residual, 2, out=grad[:, cut:])
        return grad.view_as(theta)


def stacked(model: FlatModel) -> Stacked:
    """The fastest way for a model."""
    plain = type(model.module) is nn.Linear and model.loss is nn.functional.cross_entropy
    return LinearSoftmax(model) if plain and model.size == _all(model) else Vmapped(model)


def _all(model: FlatModel) -> int:
    """The number of parameters, frozen ones included."""
    return sum(p.numel() for p in model.module.parameters())
