"""Vectors as bytes without any loss, short where they are whole multiples of a power of two, as sums of messages are.

In each layer the largest power of two is found of which all numbers are multiples; the multiples are written like codes
(`codes.py`), in as narrow whole numbers as hold them. Where that is not shorter, the numbers are written as they are.
"""

import numpy as np

from feddyn.wire.base import Numbers, Sizes
from feddyn.wire.codes import EMPTY, LEAST, MOST, Groups, Signed, groups, read, scaled, write
from feddyn.wire.digits import Reader, Whole, refusal

FLOATS = 0
"""The first byte: numbers as they are, or else how many bytes the multiples have."""
DIGITS = {2: 15, 4: 31, 8: 53}
"""Binary digits that whole numbers of so many bytes hold, of the 53 that floats have."""


def write_exactly(vector: Numbers, sizes: Sizes) -> bytes:
    """A vector of finite numbers of float64."""
    where = groups(sizes)
    for width in DIGITS:
        if (found := _multiples(vector, where, width)) is not None:
            codes, exponents = found
            if max(codes.max(initial=0), -codes.min(initial=0)) < 128:
                codes = codes.astype(np.int8)
            short = write(codes, exponents, 8 * codes.itemsize)
            if len(short) < vector.nbytes:
                return bytes([codes.itemsize]) + short
            break
    return bytes([FLOATS]) + vector.astype("<f8").tobytes()


def _multiples(vector: Numbers, where: Groups, width: int) -> tuple[Signed, Whole] | None:
    """The numbers as multiples of powers of two, in so many bytes, and the exponents of these; None where they are no
    multiples, or too large ones."""
    codes, exponents = np.empty(len(vector), f"i{width}"), np.empty_like(where.sizes)
    for group, (start, size) in enumerate(zip(*where, strict=True)):
        value, mine = vector[start : start + size], codes[start : start + size]
        largest = max(value.max(), -value.min())
        finest = int(np.frexp(largest)[1]) - DIGITS[width]  # in units of 2^finest the largest has all the digits
        if largest > 0 and not LEAST <= finest <= MOST - DIGITS[width]:
            return None
        units = value * 2.0**-finest  # which is exact, and quicker than ldexp
        np.copyto(mine, units, casting="unsafe")
        if not np.array_equal(mine, units):
            return None
        bits = int(np.bitwise_or.reduce(mine))
        shift = (bits & -bits).bit_length() - 1 if bits else 0
        mine >>= shift
        exponents[group] = finest + shift if bits else EMPTY
    return codes, exponents


def read_exactly(reader: Reader, sizes: Sizes) -> Numbers:
    """The vector that was written."""
    if (width := reader.byte()) == FLOATS:
        return reader.floats(sum(sizes), "f8")
    if width not in (1, *DIGITS):
        raise refusal(f"multiples of {width} bytes")
    where = groups(sizes)
    codes, exponents = read(reader, sum(sizes), len(where.sizes), 8 * width)
    return scaled(codes, exponents, where)
