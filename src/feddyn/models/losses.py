"""Losses for targets that cross-entropy does not take, each the mean over a batch."""

import torch
from torch.nn import functional

IGNORED = -100
"""The target of a place that does not count, as PyTorch has it."""


def binary(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    r"""Binary cross-entropy of logits z, for two classes or for several labels that may hold together:

        mean of  log(1 + e^z) - y z ,   y in {0, 1}

    Outputs are one for each target, of shape (n,), (n, 1) or (n, labels); targets may be of any type.
    """
    return functional.binary_cross_entropy_with_logits(output.reshape(y.shape), y.to(output.dtype))


def sequence(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of scores (n, length, classes) and targets (n, length), the mean over all places that count: a
    target of -100 does not."""
    return functional.cross_entropy(output.movedim(-1, 1), y, ignore_index=IGNORED)
