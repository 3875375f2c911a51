"""Vectors of whole numbers, with a power of two as the scale of each group of them, as bytes.

All are written by a Rice code, 0, -1, 1, -2, 2, ... as 0, 1, 2, 3, 4, ...; but where 0 is much more, or much less,
frequent than others, or there are only 0, 1 and -1, what is written are the places of those that are not 0 (a bit a
place or, where there are few of them or of the others, a Rice code of the distances between these), their signs, and a
Rice code of their magnitudes less 1. Where that is longer, all have so many bits each.
"""

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.wire.bits import Reader, Unsigned, Whole, count, packed, refusal, rice, unsigned

Chosen: TypeAlias = npt.NDArray[np.bool_]
Signed: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Codes, of 1, 2, 4 or 8 bytes each."""
EMPTY, LEAST, MOST = -128, -126, 127
"""Exponents: of a group of zeros, the least and the most of all others."""
A_BYTE_EACH = 16
"""Up to so many exponents are written as they are."""
PLACES, PACKED, ALL = 0, 1, 2
FEW, SOME, MOST_OF_THEM = 0, 1, 2


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


def scaled(codes: Signed, exponents: Whole, where: Groups) -> npt.NDArray[np.float64]:
    """2^exponent times the codes, 0 in a group of zeros."""
    powers = np.where(exponents == EMPTY, np.float32(0), np.ldexp(np.float32(1), exponents))
    vector: npt.NDArray[np.float64] = np.multiply(codes, np.repeat(powers, where.sizes), dtype=np.float64)
    return vector


def write(codes: Signed, exponents: Whole, width: int) -> bytes:
    """Whole numbers of magnitudes below 2^(width - 1), with a width of 1 only 1 and -1; and the exponents of their
    scales."""
    heading = _write_exponents(exponents)
    if width == 1:
        return heading + np.packbits(codes > 0).tobytes()
    folded, filled = _folded(codes), codes != 0
    if _smooth(folded, len(codes) - int(np.count_nonzero(filled))):
        kind, body = ALL, rice(folded)
    else:
        body, places = write_places(filled)
        values = codes.take(places)
        body += np.packbits(values < 0).tobytes() + rice(np.abs(values).view(folded.dtype) - folded.dtype.type(1))
        kind = PLACES
    if len(body) > len(codes) * width // 8:
        kind, body = PACKED, packed(folded, width)
    return heading + bytes([kind]) + body


def _smooth(folded: Unsigned, zeros: int) -> bool:
    """Whether 0 is about as frequent as -1: up to twice as frequent, or four times where few are beyond 1 and -1, and
    there are such. Then one Rice code is as short as the other way, or shorter."""
    ones = int(np.count_nonzero(folded == 1))
    others = len(folded) - zeros
    most = 4 if 20 * ones >= 7 * others else 2
    return ones <= 2 * zeros and zeros <= most * ones and bool(folded.max() > 2)


def read(reader: Reader, size: int, groups: int, width: int) -> tuple[Signed, Whole]:
    """So many whole numbers, and the exponents of so many groups."""
    exponents = _read_exponents(reader, groups)
    if width == 1:
        return reader.bits(size).view(np.int8) * np.int8(2) - np.int8(1), exponents
    if (kind := reader.byte()) in (ALL, PACKED):
        folded = reader.rice(size, width) if kind == ALL else reader.packed(size, width)
        _require_below(folded, (1 << width) - 1)
        return _unfolded(folded), exponents
    if kind != PLACES:
        raise refusal(f"codes of the kind {kind}")
    places = read_places(reader, size)
    signs = 1 - 2 * reader.bits(len(places)).view(np.int8)
    less_one = reader.rice(len(places), width)
    _require_below(less_one, (1 << width - 1) - 1)
    codes = np.zeros(size, f"i{less_one.itemsize}")
    codes[places] = (less_one + less_one.dtype.type(1)).view(codes.dtype) * signs
    return codes, exponents


def _write_exponents(exponents: Whole) -> bytes:
    """A byte each or, of many, a Rice code of the differences."""
    if len(exponents) <= A_BYTE_EACH:
        return exponents.astype(np.int8).tobytes()
    return rice(_folded(np.diff(exponents, prepend=0)))


def _read_exponents(reader: Reader, number: int) -> Whole:
    if number <= A_BYTE_EACH:
        return reader.take(number).view(np.int8).astype(np.int64)
    exponents: Whole = np.cumsum(_unfolded(reader.rice(number, 16)), dtype=np.int64)
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


def _require_below(value: Unsigned, limit: int) -> None:
    if len(value) and int(value.max()) >= limit:
        raise refusal(f"a code of {int(value.max())}, where {limit - 1} is the most")


def write_places(filled: Chosen) -> tuple[bytes, Whole]:
    """Which coordinates are meant, as bytes and as numbers."""
    places = np.flatnonzero(filled)
    if 2 * len(filled) <= 5 * len(places) <= 3 * len(filled):  # a bit each is about as short as a Rice code
        return bytes([SOME]) + np.packbits(filled).tobytes(), places
    few = 2 * len(places) < len(filled)
    distances = np.diff(places if few else np.flatnonzero(~filled), prepend=-1) - 1
    heading = bytes([FEW if few else MOST_OF_THEM]) + count(len(distances))
    return heading + rice(distances.astype(unsigned(_width(len(filled))))), places


def read_places(reader: Reader, size: int) -> Whole:
    """Which of so many coordinates are meant, in rising order."""
    if (kind := reader.byte()) == SOME:
        return np.flatnonzero(reader.bits(size).view(np.bool_))
    if kind not in (FEW, MOST_OF_THEM):
        raise refusal(f"places of the kind {kind}")
    distances = reader.rice(reader.count(size), _width(size))
    places: Whole = np.cumsum(distances, dtype=np.int64)
    places += np.arange(len(places))
    if len(places) and places[-1] >= size:
        raise refusal(f"a coordinate beyond {size}")
    if kind == FEW:
        return places
    filled = np.ones(size, np.bool_)
    filled[places] = False
    return np.flatnonzero(filled)


def _width(size: int) -> int:
    """Bits of the distances between so many coordinates."""
    return max(1, size.bit_length())
