"""The model and the metric that setting.toml names. Change them as you like: every run keeps a copy of this file."""

import torch
from torch import nn

from feddyn import Metric


class Net(nn.Sequential):
    """A network with one hidden layer. `features` and `classes` are filled in from the data, `width` from the setting.

    Any torch.nn.Module will do. Batch norm will not, because its running statistics cannot be averaged between devices:
    feddyn.models.group_norm(model) replaces it.
    """

    def __init__(self, features: int, classes: int, width: int = 16):
        super().__init__(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, classes))


def counts(output: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of class 1 ("yes") in a batch: found and right, found and wrong, missed. Such numbers add up over batches."""
    found = output.argmax(1) == 1
    return (found & (y == 1)).sum(), (found & (y != 1)).sum(), (~found & (y == 1)).sum()


f1 = Metric("f1", counts, lambda sums: 2 * sums[0] / max(1, 2 * sums[0] + sums[1] + sums[2]), better="higher")
