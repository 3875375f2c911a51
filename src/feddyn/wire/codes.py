"""Vectors of whole numbers, with a power of two as the scale of each group of them, as bytes.

0, -1, 1, -2, 2, ... are written as the numbers 0, 1, 2, 3, 4, ... (`digits.py`). Where few are not 0, their places are
written, and then these alone, less 1.
"""

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.wire.digits import Reader, Unsigned, Whole, coded, count, numbers, refusal, unsigned

Signed: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Codes, of 1, 2, 4 or 8 bytes each."""
EMPTY, LEAST, MOST = -128, -126, 127
"""Exponents: of a group of zeros, the least and the most of all others."""
A_BYTE_EACH = 16
"""Up to so many exponents are written as they are."""
PLACES, ALL = 0, 1
"""The first byte of codes: places come first, or all are written."""
DISTANCES, FLAGS = 0, 1
"""The first byte of places: the distances between them, or a bit for each coordinate."""
FEW = 8
"""One in so many coordinates at the most is few."""


class Groups(NamedTuple):
    """Coordinates that share a scale: where each group starts, and how many there are in it."""

    starts: Whole
    sizes: Whole


@lru_cache(maxsize=256)
def groups(sizes: tuple[int, ...], block: int | None = None) -> Groups:
    """The parts of a vector that are not empty; with a `block`, cut into blocks of that size."""
    if block is not None:
        sizes = tuple(min(block, size - at) for size in sizes for at in range(0, size, block))
    found = np.array([size for size in sizes if size], np.int64)
    return Groups(np.cumsum(found) - found, found)


def scaled(codes: Signed, exponents: Whole, where: Groups) -> npt.NDArray[np.floating[Any]]:
    """2^exponent times the codes, 0 in a group of zeros; in float32 where that holds codes of a byte exactly."""
    short = codes.itemsize == 1 and exponents.max(initial=0) <= MOST - 6
    powers = np.where(exponents == EMPTY, np.float32(0), np.ldexp(np.float32(1), exponents))
    vector: npt.NDArray[np.floating[Any]] = np.repeat(powers.astype("f4" if short else "f8"), where.sizes)
    vector *= codes
    return vector


def write(codes: Signed, exponents: Whole, width: int) -> bytes:
    """Whole numbers of magnitudes below 2^(width - 1), with a width of 1 only 1 and -1; and the exponents of their
    scales."""
    heading = _write_exponents(exponents)
    if width == 1:
        return heading + np.packbits(codes > 0).tobytes()
    folded = _folded(codes)
    filled = folded != 0
    if FEW * int(np.count_nonzero(filled)) > len(codes):
        return heading + bytes([ALL]) + numbers(folded)
    places = np.flatnonzero(filled)
    less_one = folded.take(places) - folded.dtype.type(1)
    return heading + bytes([PLACES]) + write_places(places, len(codes)) + numbers(less_one)


def read(reader: Reader, size: int, groups: int, width: int) -> tuple[Signed, Whole]:
    """So many whole numbers, and the exponents of so many groups."""
    exponents = _read_exponents(reader, groups)
    if width == 1:
        return reader.bits(size).view(np.int8) * np.int8(2) - np.int8(1), exponents
    most = (1 << width) - 2
    if (kind := reader.byte()) == ALL:
        folded = reader.numbers(size, width)
        _require_at_most(folded, most)
        return _unfolded(folded), exponents
    if kind != PLACES:
        raise refusal(f"codes of the kind {kind}")
    places = read_places(reader, size)
    if FEW * len(places) > size:
        raise refusal(f"{len(places)} places of {size}, which are not few")
    less_one = reader.numbers(len(places), width)
    _require_at_most(less_one, most - 1)
    folded = np.zeros(size, less_one.dtype)
    folded[places] = less_one + less_one.dtype.type(1)
    return _unfolded(folded), exponents


def _write_exponents(exponents: Whole) -> bytes:
    """A byte each or, of many, the differences."""
    if len(exponents) <= A_BYTE_EACH:
        return exponents.astype(np.int8).tobytes()
    return numbers(_folded(np.diff(exponents, prepend=0).astype(np.int16)))


def _read_exponents(reader: Reader, number: int) -> Whole:
    if number <= A_BYTE_EACH:
        return reader.take(number).view(np.int8).astype(np.int64)
    exponents: Whole = np.cumsum(_unfolded(reader.numbers(number, 16)), dtype=np.int64)
    if not EMPTY <= exponents.min() <= exponents.max() <= MOST:
        raise refusal("a scale beyond all numbers")
    return exponents


def _folded(codes: Signed) -> Unsigned:
    """0, -1, 1, -2, 2, ... as 0, 1, 2, 3, 4, ..."""
    return (codes + codes ^ codes >> codes.dtype.type(8 * codes.itemsize - 1)).view(f"u{codes.itemsize}")


def _unfolded(value: Unsigned) -> Signed:
    """`_folded` undone."""
    one, kind = value.dtype.type(1), f"i{value.itemsize}"
    codes: Signed = (value >> one).view(kind) ^ -(value & one).view(kind)
    return codes


def _require_at_most(value: Unsigned, most: int) -> None:
    if (largest := int(value.max(initial=0))) > most:
        raise refusal(f"a code of {largest}, where {most} is the most")


def write_places(places: Whole, size: int) -> bytes:
    """Which of so many coordinates are meant, in rising order."""
    if FEW * len(places) > size:
        flags = np.zeros(size, np.bool_)
        flags[places] = True
        return bytes([FLAGS]) + coded(np.packbits(flags))
    distances = (np.diff(places, prepend=-1) - 1).astype(unsigned(_width(size)))
    return bytes([DISTANCES]) + count(len(places)) + numbers(distances)


def read_places(reader: Reader, size: int) -> Whole:
    """Which of so many coordinates are meant, in rising order."""
    if (kind := reader.byte()) == FLAGS:
        return np.flatnonzero(np.unpackbits(reader.coded(-(-size // 8)), count=size).view(np.bool_))
    if kind != DISTANCES:
        raise refusal(f"places of the kind {kind}")
    distances = reader.numbers(reader.count(size // FEW), _width(size))
    places: Whole = np.cumsum(distances, dtype=np.int64)
    places += np.arange(len(places))
    if len(places) and places[-1] >= size:
        raise refusal(f"a coordinate beyond {size}")
    return places


def _width(size: int) -> int:
    """Bits of the distances between so many coordinates."""
    return max(1, size.bit_length())
