r"""Sums that do not depend on the order or the grouping of their terms.

Floating-point addition is not associative, so a sum over devices would change with the number of processes that share
the work. Here every number x is split into two whole numbers,

    high = round(2^c x) ,   low = round(2^f (x - 2^-c high)) ,

and whole numbers are added in float64, which is exact, in any order, as long as their sum stays below 2^53. For up to
2^b terms below 2^24 in magnitude that is so with c = 29 - b and f = 53 + c - b: with a thousand terms each is rounded
to a multiple of 2^-62, with a million to one of 2^-42. Splitting is exact in float32 as in float64.
"""

from typing import final

import torch

from feddyn.algorithms.base import Vector

LIMIT = 2.0**24
"""From here on numbers count as diverged."""


@final
class ExactSums:
    """Sums of up to `terms` vectors each."""

    def __init__(self, terms: int):
        bits = max(terms - 1, 1).bit_length()
        self._coarse, self._fine = 2.0 ** (29 - bits), 2.0 ** (82 - 2 * bits)

    def add(self, total: torch.Tensor, terms: Vector) -> bool:
        """Add a vector, or several stacked, to a sum (2, d); False, and nothing added, where one has diverged."""
        smallest, largest = (float(extreme) for extreme in torch.aminmax(terms))
        if not (smallest > -LIMIT and largest < LIMIT):  # also where they are not a number
            return False
        high = (terms * self._coarse).round_()
        low = torch.sub(terms, high, alpha=1 / self._coarse).mul_(self._fine).round_()
        for row, whole in zip(total.unbind(), (high, low), strict=True):
            row.add_(whole if whole.dim() == 1 else whole.sum(0, dtype=torch.float64))
        return True

    def value(self, total: torch.Tensor) -> Vector:
        """A sum as a vector of float64."""
        high, low = total.unbind()
        return torch.add(high / self._coarse, low, alpha=1 / self._fine)


def zeros(width: int, device: torch.device | None = None) -> torch.Tensor:
    """An empty sum of vectors: two rows of whole numbers."""
    return torch.zeros(2, width, dtype=torch.float64, device=device)
