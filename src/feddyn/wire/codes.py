"""Vectors of whole numbers, with a power of two as the scale of each group of them, as bytes.

Most are 0, or small: written are the distances between those that are not 0, their signs, and their magnitudes less 1,
the first and the last in a Rice code; or all of them with so many bits each, whichever is shorter.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from feddyn.wire.bits import Reader, Whole, count, packed, refusal, rice

EMPTY, LEAST, MOST = -128, -126, 127
"""Exponents: of a group of zeros, the least and the most of all others."""
SPARSE, DENSE = 0, 1


class Groups(NamedTuple):
    """Coordinates that share a scale: where each group starts, and how many there are in it."""

    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


@lru_cache(maxsize=256)
def groups(sizes: tuple[int, ...], block: int | None = None) -> Groups:
    """The parts of a vector, of sizes above 0; with a `block`, cut into blocks of that size."""
    if block is not None:
        sizes = tuple(min(block, size - at) for size in sizes for at in range(0, size, block))
    found = np.array(sizes, np.int64)
    return Groups(np.cumsum(found) - found, found)


def scales(exponents: Whole, where: Groups) -> npt.NDArray[np.float64]:
    """2^exponent for each coordinate, 0 in a group of zeros."""
    powers = np.where(exponents == EMPTY, 0.0, np.ldexp(1.0, exponents))
    return np.repeat(powers, where.sizes)


def write(codes: Whole, exponents: Whole, width: int) -> bytes:
    """Whole numbers of magnitudes below 2^(width - 1), or with a width of 1 only 1 and -1; and the exponents of their
    scales."""
    steps = np.diff(exponents, prepend=0)
    heading = rice(np.where(steps < 0, -2 * steps - 1, 2 * steps))
    if width == 1:
        return heading + np.packbits(codes > 0).tobytes()
    places = np.flatnonzero(codes)
    values = codes[places]
    distances, signs, magnitudes = np.diff(places, prepend=-1) - 1, np.packbits(values < 0), np.abs(values) - 1
    sparse = count(len(places)) + rice(distances) + signs.tobytes() + rice(magnitudes)
    if len(sparse) <= len(codes) * width // 8:
        return heading + bytes([SPARSE]) + sparse
    return heading + bytes([DENSE]) + packed(codes + (1 << width - 1), width)


def read(reader: Reader, size: int, groups: int, width: int) -> tuple[Whole, Whole]:
    """So many whole numbers, and the exponents of so many groups."""
    steps = reader.rice(groups)
    exponents: Whole = np.cumsum(np.where(steps & 1, -(steps >> 1) - 1, steps >> 1))
    if len(exponents) and not EMPTY <= exponents.min() <= exponents.max() <= MOST:
        raise refusal("a scale beyond all numbers")
    if width == 1:
        return 2 * reader.packed(size, 1) - 1, exponents
    if (kind := reader.byte()) == DENSE:
        codes = reader.packed(size, width) - (1 << width - 1)
    elif kind == SPARSE:
        codes = np.zeros(size, np.int64)
        places = read_places(reader, size)
        negative = np.unpackbits(reader.take(-(-len(places) // 8)), count=len(places)).astype(np.bool_)
        values = reader.rice(len(places)) + 1
        codes[places] = np.where(negative, -values, values)
    else:
        raise refusal(f"codes of the kind {kind}")
    if size and not -(1 << width - 1) < codes.min() <= codes.max() < 1 << width - 1:
        raise refusal(f"codes of more than {width} bits")
    return codes, exponents


def read_places(reader: Reader, size: int) -> Whole:
    """Rising numbers below `size`: how many there are, and their distances."""
    distances = reader.rice(reader.count(size))
    places: Whole = np.cumsum(distances + 1) - 1
    if len(places) and (int(distances.max()) >= size or places[-1] >= size):
        raise refusal(f"a coordinate beyond {size}")
    return places


def write_places(places: Whole) -> bytes:
    """Rising numbers: how many there are, and their distances."""
    return count(len(places)) + rice(np.diff(places, prepend=-1) - 1)
