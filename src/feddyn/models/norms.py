"""Normalisation without running statistics, which are not parameters and cannot be averaged between devices."""

import copy
import math

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from feddyn.errors import InputError


def group_norm(module: nn.Module, groups: int = 2) -> nn.Module:
    """A copy of a module in which every layer with running statistics (BatchNorm, InstanceNorm that tracks them) is
    nn.GroupNorm of at most so many groups, with the same affine parameters; 2 is what the paper's ResNet-18 has.

    The function changes, since a sample is now normalised by its own statistics: train it, or fine-tune it, afterwards.
    """
    if groups < 1:
        raise InputError(f"group_norm: groups must be a whole number of at least 1, not {groups!r}")
    if isinstance(module, _NormBase) and module.track_running_stats:
        return _converted(module, groups)
    copied = copy.deepcopy(module)
    for name, layer in list(copied.named_modules()):
        if isinstance(layer, _NormBase) and layer.track_running_stats:
            above, _, last = name.rpartition(".")
            setattr(copied.get_submodule(above), last, _converted(layer, groups))
    return copied


def _converted(layer: _NormBase, groups: int) -> nn.GroupNorm:
    channels = layer.num_features
    if channels < 1:
        raise InputError(f"group_norm: a {type(layer).__name__} has no size yet: pass a batch through the model once")
    count = math.gcd(groups, channels)
    if channels // count < 2:
        count = 1  # a group of one number without an image around it would always be normalised to zero
    norm = nn.GroupNorm(count, channels, layer.eps, layer.affine)
    if layer.affine:
        norm.weight, norm.bias = copy.deepcopy(layer.weight), copy.deepcopy(layer.bias)
    return norm.train(layer.training)
