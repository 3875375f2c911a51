"""Vectors as bytes without any loss, short where they are whole multiples of a power of two, as sums of messages are.

In each layer the largest power of two is found of which all numbers are multiples; the multiples are written like codes
(`codes.py`). Where that is not shorter, the numbers are written as they are.
"""

import numpy as np

from feddyn.wire.base import Numbers, Sizes
from feddyn.wire.bits import WIDEST, Reader, refusal
from feddyn.wire.codes import EMPTY, LEAST, MOST, Groups, groups, read, scales, write

MULTIPLES, FLOATS = 0, 1


def write_exactly(vector: Numbers, sizes: Sizes) -> bytes:
    """A vector of finite numbers of float64."""
    short = _multiples(vector, groups(tuple(size for size in sizes if size)))
    if short is None or len(short) >= vector.nbytes:
        return bytes([FLOATS]) + vector.astype("<f8").tobytes()
    return bytes([MULTIPLES]) + short


def _multiples(vector: Numbers, where: Groups) -> bytes | None:
    """The numbers as multiples of powers of two; None where they are not, or too large ones."""
    largest = float(np.abs(vector).max(initial=0.0))
    finest = int(np.frexp(largest)[1]) - (WIDEST - 1)  # in units of 2^finest the largest number has so many bits
    if largest > 0 and not LEAST <= finest <= MOST - WIDEST:
        return None
    scaled = np.ldexp(vector, -finest)
    whole = scaled.astype(np.int64)
    if not np.array_equal(whole, scaled):
        return None
    bits = np.bitwise_or.reduceat(whole, where.starts)
    shift = np.where(bits == 0, 0, np.frexp((bits & -bits).astype(np.float64))[1] - 1)
    exponents = np.where(bits == 0, EMPTY, finest + shift)
    scaled *= np.repeat(np.ldexp(1.0, -shift), where.sizes)
    return write(scaled, exponents, WIDEST)


def read_exactly(reader: Reader, sizes: Sizes) -> Numbers:
    """The vector that was written."""
    if (kind := reader.byte()) == FLOATS:
        return reader.floats(sum(sizes), "f8")
    if kind != MULTIPLES:
        raise refusal(f"a vector of the kind {kind}")
    where = groups(tuple(size for size in sizes if size))
    codes, exponents = read(reader, sum(sizes), len(where.sizes), WIDEST)
    codes *= scales(exponents, where)
    return codes
