"""Vectors as bytes without any loss, short where they are whole multiples of a power of two, as sums of messages are.

In each layer the largest power of two is found of which all numbers are multiples; the multiples are written like codes
(`codes.py`). Where that is not shorter, the numbers are written as they are.
"""

import numpy as np

from feddyn.wire.base import Numbers, Sizes
from feddyn.wire.bits import WIDEST, Reader, refusal
from feddyn.wire.codes import EMPTY, LEAST, MOST, groups, read, scales, write

MULTIPLES, FLOATS = 0, 1


def write_exactly(vector: Numbers, sizes: Sizes) -> bytes:
    """A vector of finite numbers of float64."""
    where = groups(tuple(size for size in sizes if size))
    units = np.minimum.reduceat(np.where(vector == 0, np.inf, _lowest_bits(vector)), where.starts)
    exponents = np.where(np.isinf(units), EMPTY, np.frexp(np.where(np.isinf(units), 1.0, units))[1] - 1)
    filled = exponents[exponents != EMPTY]
    if len(filled) == 0 or (filled.min() >= LEAST and filled.max() <= MOST):
        multiples = vector / np.repeat(np.where(np.isinf(units), 1.0, units), where.sizes)
        if np.abs(multiples).max(initial=0.0) < 2.0 ** (WIDEST - 1):
            short = write(multiples.astype(np.int64), exponents.astype(np.int64), WIDEST)
            if len(short) < vector.nbytes:
                return bytes([MULTIPLES]) + short
    return bytes([FLOATS]) + vector.astype("<f8").tobytes()


def read_exactly(reader: Reader, sizes: Sizes) -> Numbers:
    """The vector that was written."""
    if (kind := reader.byte()) == FLOATS:
        return reader.take(8 * sum(sizes)).view("<f8").astype(np.float64)
    if kind != MULTIPLES:
        raise refusal(f"a vector of the kind {kind}")
    where = groups(tuple(size for size in sizes if size))
    codes, exponents = read(reader, sum(sizes), len(where.sizes), WIDEST)
    return codes * scales(exponents, where)


def _lowest_bits(vector: Numbers) -> Numbers:
    """The value of the lowest bit that is set in each number: the number less what it is without that bit."""
    bits = vector.view(np.int64)
    without = (bits & (bits - 1)).view(np.float64)
    power = bits & ((1 << 52) - 1) == 0  # no bit is set but the leading one, which is not written
    return np.abs(np.where(power, vector, vector - without))
