r"""Sums that do not depend on the order or the grouping of their terms.

Floating-point addition is not associative, so a sum over devices would change with the number of processes that share
the work. Here every number x is split into two whole numbers,

    high = round(2^10 x) ,   low = round(2^54 (x - 2^-10 high)) ,   |low| <= 2^43 ,

and whole numbers are added: exactly, in any order. What is lost is the rounding of each term to a multiple of 2^-54,
finer than float64 is near 1. For up to 2^20 terms below 2^32 in magnitude neither sum can leave the range of int64.
"""

import torch

from feddyn.algorithms.base import Vector

COARSE, FINE = 2.0**10, 2.0**54
LIMIT = 2.0**32
"""From here on numbers count as diverged: the high parts of 2^20 terms below it add up to less than 2^63."""
BLOCK = 1 << 15
"""Numbers that are split at a time, so that the passes over them stay in the cache."""


def zeros(width: int, device: torch.device | None = None) -> torch.Tensor:
    """An empty sum of vectors: two rows of whole numbers."""
    return torch.zeros(2, width, dtype=torch.int64, device=device)


def add(total: torch.Tensor, terms: Vector) -> bool:
    """Add a vector, or several stacked, to a sum; False, and nothing useful in the sum, where one has diverged."""
    smallest, largest = (float(extreme) for extreme in torch.aminmax(terms))
    if not (smallest > -LIMIT and largest < LIMIT):  # also where they are not a number
        return False
    for at in range(0, terms.shape[-1], BLOCK):
        part, into = terms[..., at : at + BLOCK].double(), total[:, at : at + BLOCK]
        high = (part * COARSE).round_()
        low = torch.sub(part, high, alpha=1 / COARSE).mul_(FINE).round_()
        for row, whole in zip(into.unbind(), (high.long(), low.long()), strict=True):
            row.add_(whole if whole.dim() == 1 else whole.sum(0))
    return True


def value(total: torch.Tensor, dtype: torch.dtype) -> Vector:
    """The sum as a vector."""
    high, low = total.unbind()
    return high.double().div_(COARSE).add_(low.double(), alpha=1 / FINE).to(dtype)
