r"""Weight standardisation of convolutions (Qiao et al., 2019), which federated learning gained much by (FedWSQ, Kim et
al., ICCV 2025).

Before it is used, every filter w of N numbers is centred and divided by its standard deviation, and here also by
sqrt(N), which makes it a centred filter of length 1:

    w_hat = (w - mean(w)) / (sqrt(N) std(w)) = (w - mean(w)) / ||w - mean(w)||

The factor 1/sqrt(N) (Brock et al., ICLR 2021) keeps activations at the size of their inputs in networks without
normalisation, such as the CIFAR network; before a GroupNorm it cancels, up to its epsilon, and so it does not matter
that the original has no such factor. The loss then depends neither on a filter's mean nor on its length, so that these
cannot drift apart between devices.
"""

import copy

import torch
from torch import nn

from feddyn.errors import InputError

SHORTEST = 1e-5
"""Added to the length of a filter, which may be 0."""


class StandardisedConv2d(nn.Conv2d):
    """A convolution whose filters are centred and of length 1 when they are used; its parameters are the plain ones."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The convolution with the standardised filters."""
        centred = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        length = torch.linalg.vector_norm(centred, dim=(1, 2, 3), keepdim=True)
        output: torch.Tensor = self._conv_forward(input, centred / (length + SHORTEST), self.bias)
        return output


def standardise(model: nn.Module) -> nn.Module:
    """A copy of a model in which all 2-d convolutions are standardised; the parameters, and their order, are the same.

    >>> standardise(nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU()))[0]
    StandardisedConv2d(3, 8, kernel_size=(5, 5), stride=(1, 1))
    """
    copied = copy.deepcopy(model)
    found = [layer for layer in copied.modules() if type(layer) is nn.Conv2d]
    if not found:
        raise InputError(f"the model {type(model).__name__} has no nn.Conv2d whose weights could be standardised")
    for layer in found:
        layer.__class__ = StandardisedConv2d  # the same parameters and options, another forward
    return copied
