"""Vectors of whole numbers, with a power of two as the scale of each group of them, as bytes.

Most are small: written are the places of those that are not 0 (a bit a place or, where there are few of them or of the
others, a Rice code of the distances between these), their signs, and a Rice code of their magnitudes less 1. Where that
is longer, all of them are written with so many bits each.
"""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.wire.bits import Reader, Whole, count, packed, refusal, rice

Numbers: TypeAlias = npt.NDArray[np.float64]
Chosen: TypeAlias = npt.NDArray[np.bool_]
EMPTY, LEAST, MOST = -128, -126, 127
"""Exponents: of a group of zeros, the least and the most of all others."""
PLACES, PACKED = 0, 1
FEW, SOME, MOST_OF_THEM = 0, 1, 2


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


def scales(exponents: Whole, where: Groups) -> Numbers:
    """2^exponent for each coordinate, 0 in a group of zeros."""
    powers = np.where(exponents == EMPTY, 0.0, np.ldexp(1.0, exponents))
    return np.repeat(powers, where.sizes)


def write(codes: Numbers, exponents: Whole, width: int) -> bytes:
    """Whole numbers, as floats, of magnitudes below 2^(width - 1), with a width of 1 only 1 and -1; and the exponents
    of their scales."""
    steps = np.diff(exponents, prepend=0)
    heading = rice(np.where(steps < 0, -2 * steps - 1, 2 * steps))
    if width == 1:
        return heading + np.packbits(codes > 0).tobytes()
    filled = codes != 0
    values = codes[np.flatnonzero(filled)].astype(np.int64)
    places = write_places(filled) + np.packbits(values < 0).tobytes() + rice(np.abs(values) - 1)
    if len(places) <= len(codes) * width // 8:
        return heading + bytes([PLACES]) + places
    return heading + bytes([PACKED]) + packed(codes.astype(np.int64) + (1 << width - 1), width)


def read(reader: Reader, size: int, groups: int, width: int) -> tuple[Numbers, Whole]:
    """So many whole numbers, as floats, and the exponents of so many groups."""
    steps = reader.rice(groups)
    exponents: Whole = np.cumsum(np.where(steps & 1, -(steps >> 1) - 1, steps >> 1))
    if len(exponents) and not EMPTY <= exponents.min() <= exponents.max() <= MOST:
        raise refusal("a scale beyond all numbers")
    if width == 1:
        return np.where(reader.packed(size, 1) == 1, 1.0, -1.0), exponents
    if (kind := reader.byte()) == PACKED:
        values = reader.packed(size, width) - (1 << width - 1)
        codes = values.astype(np.float64)
    elif kind == PLACES:
        codes = np.zeros(size)
        places = read_places(reader, size)
        negative = np.unpackbits(reader.take(-(-len(places) // 8)), count=len(places)).view(np.int8)
        values = reader.rice(len(places))
        values += 1
        values *= np.int8(1) - np.int8(2) * negative
        codes[places] = values
    else:
        raise refusal(f"codes of the kind {kind}")
    if len(values) and not -(1 << width - 1) < values.min() <= values.max() < 1 << width - 1:
        raise refusal(f"codes of more than {width} bits")
    return codes, exponents


def write_places(filled: Chosen) -> bytes:
    """Which coordinates are meant."""
    number = int(np.count_nonzero(filled))
    if 2 * len(filled) <= 5 * number <= 3 * len(filled):  # a bit each is about as short as a Rice code
        return bytes([SOME]) + np.packbits(filled).tobytes()
    few = 2 * number < len(filled)
    distances = np.diff(np.flatnonzero(filled if few else ~filled), prepend=-1) - 1
    return bytes([FEW if few else MOST_OF_THEM]) + count(len(distances)) + rice(distances)


def read_places(reader: Reader, size: int) -> Whole:
    """Which of so many coordinates are meant, in rising order."""
    if (kind := reader.byte()) == SOME:
        return np.flatnonzero(np.unpackbits(reader.take(-(-size // 8)), count=size).view(np.bool_))
    if kind not in (FEW, MOST_OF_THEM):
        raise refusal(f"places of the kind {kind}")
    distances = reader.rice(reader.count(size))
    places: Whole = np.cumsum(distances + 1) - 1
    if len(places) and (distances.min() < 0 or distances.max() >= size or places[-1] >= size):
        raise refusal(f"a coordinate beyond {size}")
    if kind == FEW:
        return places
    filled = np.ones(size, np.bool_)
    filled[places] = False
    return np.flatnonzero(filled)
