"""An nn.Module as a function of one flat vector, as in the paper: theta in R^d."""

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.func import functional_call

from feddyn.algorithms.base import Scalar, Vector
from feddyn.batches import Batch, arguments, mapped
from feddyn.errors import InputError
from feddyn.origin import telling

Loss: TypeAlias = Callable[[Any, torch.Tensor], torch.Tensor]
"""(model output, targets) -> the mean loss over the batch."""
Descent: TypeAlias = Callable[[Scalar], None]
"""theta <- theta - step * g in place, as a function of the step; g is the gradient where it was taken."""


class FlatModel:
    """A copy of a module whose trainable parameters are views of the vector `theta`.

    The order is that of `module.parameters()`; shared (tied) parameters count once, frozen ones not at all. With
    `channels_last`, batches of images are laid out with their channels innermost, which convolutions are faster with.
    """

    def __init__(self, module: nn.Module, loss: Loss = nn.functional.cross_entropy):
        _refuse_running_statistics(module)
        if lazy := [name for name, p in module.named_parameters() if nn.parameter.is_lazy(p)]:
            raise InputError(f"the parameter {lazy[0]!r} has no shape yet: pass a batch through the model once")
        with telling(
            "the model cannot be copied; an attribute that holds a tensor of its last call, or the old weight_norm, "
            "keeps it from that",
            InputError,
        ):
            self.module, self.loss = copy.deepcopy(module), loss
        named = [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]
        if not named:
            raise InputError(f"the model {type(module).__name__} has no trainable parameters")
        kinds = {(p.dtype, p.device) for _, p in named}
        dtype, device = next(iter(kinds))
        if len(kinds) > 1 or dtype not in (torch.float32, torch.float64) or device.type == "meta":
            found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
            raise InputError(
                "the model's parameters must be all float32 or all float64, on one device that holds them, not "
                f"{found}: model.float() makes them float32"
            )
        self.theta = torch.cat([p.detach().reshape(-1) for _, p in named])
        self.channels_last = False
        self._layout: list[tuple[str, int, torch.Size]] = []
        self._grad = torch.empty_like(self.theta)
        at = 0
        for name, p in named:
            self._layout.append((name, at, p.shape))
            p.data = self.theta[at : at + p.numel()].view(p.shape)
            at += p.numel()
        self._parameters = [p for _, p in named]
        self._parts = [p.detach() for p in self._parameters]

    @property
    def size(self) -> int:
        """d, the number of trainable parameters."""
        return self.theta.numel()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of parameters of the layers, in their order."""
        return tuple(shape.numel() for _, _, shape in self._layout)

    def __call__(self, x: Batch) -> Batch:
        """The module's output at `theta`."""
        if self.channels_last:
            x = mapped(_channels_last, x)
        args, kwargs = arguments(x)
        return self.module(*args, **kwargs)

    def gradient(self, x: Batch, y: torch.Tensor) -> Vector:
        """The gradient of the mean loss at `theta`; the next call overwrites it."""
        return torch.cat([slope.reshape(-1) for slope in self._slopes(x, y)], out=self._grad)

    def descent(self, x: Batch, y: torch.Tensor) -> Descent:
        """A step along the gradient, which never becomes one vector: that saves a pass over it."""
        slopes = self._slopes(x, y)
        return lambda step: torch._foreach_add_(self._parts, slopes, alpha=-float(step))

    def _slopes(self, x: Batch, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The gradient by parameters."""
        return torch.autograd.grad(self.loss(self(x), y), self._parameters, materialize_grads=True)

    def function(self, theta: Vector, x: Batch) -> Batch:
        """The module's output as a pure, differentiable function of a vector."""
        return functional_call(self.module, self.named(theta), *arguments(x))

    def named(self, theta: Vector) -> dict[str, torch.Tensor]:
        """The vector cut into the module's parameters, as views."""
        return {name: theta[at : at + shape.numel()].view(shape) for name, at, shape in self._layout}


def with_parameters(module: nn.Module, theta: Vector) -> nn.Module:
    """A copy of the module with these trainable parameters, for use outside of feddyn."""
    copied = copy.deepcopy(module)
    nn.utils.vector_to_parameters(theta.clone(), (p for p in copied.parameters() if p.requires_grad))
    return copied


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def _refuse_running_statistics(module: nn.Module) -> None:
    for name, layer in module.named_modules():
        if getattr(layer, "track_running_stats", False):
            raise InputError(
                f"the layer {name or 'at the top'!s} ({type(layer).__name__}) keeps running statistics, which are not "
                "parameters and cannot be averaged between devices; feddyn.models.group_norm(model) makes it GroupNorm"
            )
