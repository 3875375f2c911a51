r"""Gradients of many copies of a model, each with its own parameters and batch, as one batched computation.

Batches come as x (steps, devices, batch, ...), y (steps, devices, batch) and sample weights that add up to 1 over each
batch (or to 0: no samples); parameters as theta (settings, devices, d). All settings share the devices' batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias, final

import torch
from torch import nn
from torch.func import vmap

from feddyn.algorithms.base import Scalar, Vector
from feddyn.batches import Batch, mapped
from feddyn.models.flat import Descent, FlatModel


class Stacked(ABC):
    """The two halves of a stacked gradient at `theta`: what can be done for many steps at once, and the rest, step by
    step."""

    @abstractmethod
    def prepare(self, x: Batch, y: torch.Tensor, weight: torch.Tensor) -> Sequence[Any]:
        """Batches for `gradient`, one for each step."""

    @abstractmethod
    def gradient(self, batch: Any) -> Vector:
        """The gradients of the weighted losses, in the shape of theta. Valid until the next call."""

    @abstractmethod
    def descent(self, batch: Any) -> Descent:
        """A step along the gradient; theta may move between the gradient and the step."""


MakeStacked: TypeAlias = Callable[[Vector], Stacked]
"""How the gradients of a model are computed, given the vectors theta at which they are taken."""


@final
class Vmapped(Stacked):
    """Any module, by vmap of its forward pass; the backward pass is ordinary autograd of the sum of the losses."""

    def __init__(self, model: FlatModel, theta: Vector):
        self.model, self.theta = model, theta

    def prepare(self, x: Batch, y: torch.Tensor, weight: torch.Tensor) -> Sequence[Any]:
        steps = x if isinstance(x, torch.Tensor) else [mapped(itemgetter(step), x) for step in range(len(y))]
        return list(zip(steps, y, weight, strict=True))

    def gradient(self, batch: Any) -> Vector:
        x, y, weight = batch
        leaf = self.theta.detach().requires_grad_()
        output = vmap(vmap(self.model.function), in_dims=(0, None))(leaf, x)
        (grad,) = torch.autograd.grad((self._losses(output, y) * weight).sum(), leaf)
        return grad

    def descent(self, batch: Any) -> Descent:
        return _along(self.theta, self.gradient(batch))

    def _losses(self, output: Batch, y: torch.Tensor) -> torch.Tensor:
        """The loss of every single sample, from a loss that takes the mean over a batch."""

        def single(output: Batch, y: torch.Tensor) -> torch.Tensor:
            return self.model.loss(mapped(itemgetter(None), output), y[None])

        return vmap(vmap(vmap(single)), in_dims=(0, None))(output, y)


@final
class Perceptron(Stacked):
    r"""Linear layers with ReLU between them under cross-entropy, in closed form: for models this small autograd costs
    as much as the arithmetic, and a single model's step is taken by the very products that make up its gradient.

    With h_0 = x, z_l = W_l h_{l-1} + b_l, h_l = max(z_l, 0) and p = softmax(z_L),

        delta_L = p - onehot(y) ,    delta_l = (W_{l+1}^T delta_{l+1}) [h_l > 0]
        dW_l    = delta_l h_{l-1}^T ,    db_l = delta_l

    summed over the samples with their weights. Multiclass logistic regression is the case of one layer. Hidden layers
    have the samples first; in the last one classes come first, so that the softmax runs along contiguous memory.
    """

    def __init__(self, layers: Sequence[nn.Linear], theta: Vector):
        self.theta, self.classes = theta, layers[-1].out_features
        self._layers = [(layer.weight.shape, layer.bias is not None) for layer in layers]
        self._parameters = self._views(theta.flatten(0, 1))
        self._grad = torch.empty_like(theta)
        self._slopes = self._views(self._grad.flatten(0, 1))

    def prepare(self, x: Batch, y: torch.Tensor, weight: torch.Tensor) -> Sequence[Any]:
        settings = len(self.theta)
        onehot = nn.functional.one_hot(y, self.classes).mT * weight[..., None, :]
        parts = (x.flatten(3), onehot, weight[..., None, :])
        stacked = [p[:, None].expand(-1, settings, *p.shape[1:]).flatten(1, 2).contiguous() for p in parts]
        return list(zip(*(part.unbind() for part in stacked), strict=True))

    def gradient(self, batch: Any) -> Vector:
        for (weight, bias), (delta, h) in zip(self._slopes, self._factors(batch), strict=True):
            weight.copy_(torch.bmm(delta, h))
            if bias is not None:
                torch.sum(delta, 2, out=bias)
        return self._grad

    def descent(self, batch: Any) -> Descent:
        if self.theta.shape[:2].numel() > 1:
            return _along(self.theta, self.gradient(batch))
        factors = self._factors(batch)

        def descend(step: Scalar) -> None:
            for (weight, bias), (delta, h) in zip(self._parameters, factors, strict=True):
                weight[0].addmm_(delta[0], h[0], alpha=-float(step))
                if bias is not None:
                    bias[0].sub_(delta[0].sum(1), alpha=float(step))

        return descend

    def _factors(self, batch: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The two factors of dW of every layer: delta (stack, out, batch) and its input h (stack, batch, in)."""
        x, onehot, weight = batch
        *hidden, (w, b) = self._parameters
        inputs = [x]
        for inner_w, inner_b in hidden:
            inputs.append(torch.baddbmm(_row(inner_b, w), inputs[-1], inner_w.mT).relu_())
        logits = torch.baddbmm(_row(b, w).mT, w, inputs[-1].mT)
        deltas = [logits.softmax(1).mul_(weight).sub_(onehot)]
        for (outer_w, _), h in zip(self._parameters[:0:-1], inputs[:0:-1], strict=True):
            deltas.append(torch.bmm(deltas[-1].mT, outer_w).mul_(h.sign()).mT)
        return list(zip(reversed(deltas), inputs, strict=True))

    def _views(self, flat: Vector) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
        """The layers' W (stack, out, in) and b (stack, out) in vectors (stack, d)."""
        views: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        at = 0
        for shape, biased in self._layers:
            cut = at + shape.numel()
            end = cut + (shape[0] if biased else 0)
            views.append((flat[:, at:cut].unflatten(1, shape), flat[:, cut:end] if biased else None))
            at = end
        return views


def _row(bias: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    """A bias (stack, 1, out), or zero."""
    return like.new_zeros(1, 1, 1) if bias is None else bias[:, None]


def linear_layers(model: FlatModel) -> list[nn.Linear] | None:
    """The layers of a module that is linear, or linear layers with ReLU between them, and nothing else; with plain
    cross-entropy. None for all other models."""
    module = model.module
    parts = list(module) if type(module) is nn.Sequential else [module]
    if parts and type(parts[0]) is nn.Flatten and (parts[0].start_dim, parts[0].end_dim) == (1, -1):
        parts = parts[1:]
    layers = [part for part in parts[::2] if type(part) is nn.Linear]
    between = [part for part in parts[1::2] if type(part) is nn.ReLU]
    plain = len(parts) % 2 == 1 and len(layers) + len(between) == len(parts)
    if not plain or model.loss is not nn.functional.cross_entropy or _hooked(module):
        return None
    untied = sum(p.numel() for layer in layers for p in layer.parameters()) == model.size
    return layers if untied and all(p.requires_grad for p in module.parameters()) else None


def stacked(model: FlatModel) -> MakeStacked:
    """The fastest way to compute stacked gradients of a model."""
    layers = linear_layers(model)
    return partial(Vmapped, model) if layers is None else partial(Perceptron, layers)


def _along(theta: Vector, grad: Vector) -> Descent:
    def descend(step: Scalar) -> None:
        if isinstance(step, torch.Tensor):
            theta.addcmul_(grad, step, value=-1)
        else:
            theta.sub_(grad, alpha=step)

    return descend


def _hooked(module: nn.Module) -> bool:
    """Whether functions of somebody's own run with a module."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(part, name) for part in module.modules() for name in hooks)
