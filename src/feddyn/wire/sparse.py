r"""Sending some of the coordinates only: those with the largest magnitudes, or random ones.

Of d coordinates k are sent, so E ||Q(v) - v||^2 <= (1 - k/d) ||v||^2 if their values are exact. Random ones are sent as
they are, not d/k times as large: that would be right in the mean, but no contraction, and diverges.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from feddyn.checks import require_number
from feddyn.errors import InputError
from feddyn.wire.base import Compressor, Numbers, Sizes
from feddyn.wire.codes import read_places, write_places
from feddyn.wire.digits import Reader, Whole

SEED = 8
SAMPLED = 16
"""One in so many numbers is looked at to find a bound of the largest."""


@final
@dataclass(frozen=True)
class TopK(Compressor):
    """Sends the `fraction` of all coordinates with the largest magnitudes; places are coded by their distances.
    values: how their values are sent, such as Quantized(bits=4); default: float32."""

    fraction: float
    values: Compressor | None = None

    def __post_init__(self) -> None:
        _require("TopK", self.fraction, self.values)
        object.__setattr__(self, "fraction", float(self.fraction))  # equal ones have the same name in checksums

    def write(self, vector: Numbers, sizes: Sizes, seed: int) -> bytes:
        places = _largest(vector, _count(self.fraction, len(vector)))
        return write_places(places, len(vector)) + _write_values(self.values, vector, places, sizes, seed)

    def read(self, reader: Reader, sizes: Sizes) -> Numbers:
        return _read_values(self.values, reader, read_places(reader, sum(sizes)), sizes)


@final
@dataclass(frozen=True)
class RandomK(Compressor):
    """Sends a random `fraction` of all coordinates, other ones each time, and their seed instead of their places.
    values: how their values are sent, such as Quantized(bits=4); default: float32."""

    fraction: float
    values: Compressor | None = None

    def __post_init__(self) -> None:
        _require("RandomK", self.fraction, self.values)
        object.__setattr__(self, "fraction", float(self.fraction))  # equal ones have the same name in checksums

    def write(self, vector: Numbers, sizes: Sizes, seed: int) -> bytes:
        places = self._places(seed, len(vector))
        return seed.to_bytes(SEED, "little") + _write_values(self.values, vector, places, sizes, seed)

    def read(self, reader: Reader, sizes: Sizes) -> Numbers:
        seed = int.from_bytes(reader.take(SEED).tobytes(), "little")
        return _read_values(self.values, reader, self._places(seed, sum(sizes)), sizes)

    def _places(self, seed: int, size: int) -> Whole:
        count = _count(self.fraction, size)
        order = np.random.PCG64([seed, 1]).random_raw(size)
        return np.sort(np.argpartition(order, count - 1)[:count]) if count < size else np.arange(size)


def _require(name: str, fraction: float, values: object) -> None:
    require_number(name, "fraction", fraction)
    if fraction > 1:
        raise InputError(f"{name}: fraction is a part of all coordinates, at most 1, not {fraction}")
    if not isinstance(values, Compressor | None):
        raise InputError(f"{name}: values must be a compressor such as Quantized(bits=4), not {values!r}")


def _count(fraction: float, size: int) -> int:
    """At least one."""
    return max(1, round(fraction * size))


def _largest(vector: Numbers, count: int) -> Whole:
    """The places of the `count` numbers with the largest magnitudes, of equal ones the first; no zeros.

    A sample of them says below which magnitude none of these are likely to be: an order among all takes much longer.
    """
    magnitudes = np.abs(vector)
    if count >= len(vector):
        return np.flatnonzero(magnitudes)
    sample = magnitudes[::SAMPLED]
    kept = min(len(sample), count * len(sample) * 5 // (4 * len(vector)) + 8)
    places: Whole = np.flatnonzero(magnitudes >= np.partition(sample, len(sample) - kept)[len(sample) - kept])
    if len(places) < count:  # unlikely
        places = np.arange(len(vector))
    values = magnitudes[places]
    least = np.partition(values, len(values) - count)[len(values) - count]
    chosen = values > least
    if least > 0:
        chosen[np.flatnonzero(values == least)[: count - np.count_nonzero(chosen)]] = True
    found: Whole = places[chosen]
    return found


def _of_layers(places: Whole, sizes: Sizes) -> Sizes:
    """How many of the places there are in each layer."""
    return tuple(np.diff(np.searchsorted(places, np.cumsum(sizes)), prepend=0).tolist())


def _write_values(how: Compressor | None, vector: Numbers, places: Whole, sizes: Sizes, seed: int) -> bytes:
    values = vector[places]
    if how is None:
        largest = np.finfo(np.float32).max
        return np.clip(values, -largest, largest).astype("<f4").tobytes()
    return how.write(values, _of_layers(places, sizes), seed)


def _read_values(how: Compressor | None, reader: Reader, places: Whole, sizes: Sizes) -> Numbers:
    values = reader.floats(len(places), "f4") if how is None else how.read(reader, _of_layers(places, sizes))
    vector = np.zeros(sum(sizes), values.dtype)
    vector[places] = values
    return vector
