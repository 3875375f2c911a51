r"""Sums that do not depend on the order or the grouping of their terms.

Floating-point addition is not associative, so a sum over devices would change with the number of processes that share
the work. Here every number x is split into two whole numbers,

    high = round(2^c x) ,   low = round(2^f (x - 2^-c high)) ,

and whole numbers are added in float64, which is exact, in any order, as long as their sum stays below 2^53. For up to
2^b terms below 2^(44-b) in magnitude that is so with c = 9 and f = 62 - b: with a thousand terms each is rounded to a
multiple of 2^-52, with a million to one of 2^-42. Splitting is exact in float32 as in float64.
"""

from typing import final

import torch

from feddyn.algorithms.base import Vector

COARSE = 2.0**9


@final
class ExactSums:
    """Sums of up to `terms` vectors each, whose numbers are below `limit` in magnitude."""

    def __init__(self, terms: int):
        bits = max(terms - 1, 1).bit_length()
        self.limit, self._fine = 2.0 ** (44 - bits), 2.0 ** (62 - bits)

    def fits(self, terms: Vector) -> bool:
        """Whether all numbers are below the limit; those that are none are not."""
        smallest, largest = (float(extreme) for extreme in torch.aminmax(terms))
        return smallest > -self.limit and largest < self.limit

    def add(self, total: torch.Tensor, terms: Vector) -> bool:
        """Add a vector, or several stacked, to a sum (2, d); False, and nothing added, where a number is too large."""
        if not self.fits(terms):
            return False
        terms = terms.float() if terms.dtype.itemsize < 4 else terms
        high = (terms * COARSE).round_()
        low = torch.sub(terms, high, alpha=1 / COARSE).mul_(self._fine).round_()
        for row, whole in zip(total.unbind(), (high, low), strict=True):
            row.add_(whole if whole.dim() == 1 else whole.sum(0, dtype=torch.float64))
        return True

    def value(self, total: torch.Tensor) -> Vector:
        """A sum as a vector of float64."""
        high, low = total.unbind()
        return torch.add(high / COARSE, low, alpha=1 / self._fine)


def zeros(width: int, device: torch.device | None = None) -> torch.Tensor:
    """An empty sum of vectors: two rows of whole numbers."""
    return torch.zeros(2, width, dtype=torch.float64, device=device)
