r"""Rounding to a few whole multiples of a scale.

Each group of coordinates (a layer, a block, or the model) has a step s, a power of two, and each coordinate a code,

    c_i = round(v_i / s) ,   at most L = 2^(bits - 1) - 1 in magnitude ,      or with one bit  c_i = sign(v_i) ;

then the scale is the power of two next to <c, v> / <c, c>, with which Q(v) = scale * c is nearest to v. Whatever the
codes, if r is the ratio of the two, between 2^-1/2 and 2^1/2,

    ||Q(v) - v||^2 = ||v||^2 - (2r - r^2) <c, v>^2 / <c, c>  <=  (1 - 0.82 cos^2(c, v)) ||v||^2 ,

a contraction wherever <c, v> > 0, and the step is never so large that all codes are 0. Scales that are powers of two
take a byte, and sums of messages are exact, so that a device that was away can be sent the sum of what it missed.
"""

from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np

from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError, nearest
from feddyn.wire.base import Compressor, Numbers, Sizes
from feddyn.wire.bits import Reader, Whole
from feddyn.wire.codes import EMPTY, LEAST, MOST, Groups, groups, read, scales, write

STEPS = {8: 0.25, 4: 1.0, 2: 2.0, 1: 1.0}
"""Steps in root mean squares of a group. Updates of networks have heavy tails: what is beyond L steps is sent later."""
PER = ("layer", "block", "model")


@final
@dataclass(frozen=True)
class Quantized(Compressor):
    """Sends at most `bits` (8, 4, 2 or 1) for each coordinate; messages are entropy-coded, and often much shorter.

    per: what shares a scale, a 'layer', a 'block' of so many coordinates of a layer, or the 'model'. rounding: to the
    'nearest', or 'stochastic', which is right in the mean where steps are small. step: how coarse, in root mean squares
    of what shares the scale; a larger one makes shorter messages and larger errors.
    """

    bits: int
    per: Literal["layer", "block", "model"] = "layer"
    rounding: Literal["nearest", "stochastic"] = "nearest"
    step: float | None = None
    block: int = field(default=256, metadata={"unsaid": 256})

    def __post_init__(self) -> None:
        if self.bits not in STEPS or isinstance(self.bits, bool):
            raise InputError(f"Quantized: bits must be 8, 4, 2 or 1, not {self.bits!r}")
        for name, known in (("per", PER), ("rounding", ("nearest", "stochastic"))):
            if (word := getattr(self, name)) not in known:
                raise InputError(f"Quantized: {name} {word!r} is not known; {nearest(str(word), known)}")
        if self.step is not None:
            require_number("Quantized", "step", self.step)
        require_whole("Quantized", "block", self.block, 1)

    def write(self, vector: Numbers, sizes: Sizes, seed: int) -> bytes:
        where = self._groups(sizes)
        if len(vector) == 0:
            return b""
        room = vector * vector  # large arrays are used again: fresh memory takes longer than the arithmetic
        power = np.add.reduceat(room, where.starts)
        largest = np.maximum.reduceat(np.abs(vector, out=room), where.starts)
        filled = np.add.reduceat(room != 0, where.starts, dtype=np.int64)
        wanted = (self.step or STEPS[self.bits]) * np.sqrt(power / np.maximum(filled, 1))
        codes = np.repeat(_power_of_two(wanted, largest), where.sizes)
        self._round(np.divide(vector, codes, out=codes), seed)
        exponents = _fitted(codes, vector, where, room)
        if self.bits > 1 and (exponents == EMPTY).any():
            codes[np.repeat(exponents == EMPTY, where.sizes)] = 0
        return write(codes, exponents, self.bits)

    def _round(self, ratio: Numbers, seed: int) -> None:
        """Numbers to their codes, in place."""
        if self.bits == 1:
            np.copyto(ratio, np.where(ratio < 0, -1.0, 1.0))
            return
        if self.rounding == "stochastic":
            random = np.random.PCG64(seed).random_raw(len(ratio)) >> np.uint64(11)
            ratio += random * 2.0**-53
            np.floor(ratio, out=ratio)
        most = (1 << self.bits - 1) - 1
        np.clip(np.rint(ratio, out=ratio), -most, most, out=ratio)

    def read(self, reader: Reader, sizes: Sizes) -> Numbers:
        where = self._groups(sizes)
        if not sum(sizes):
            return np.zeros(0)
        codes, exponents = read(reader, sum(sizes), len(where.sizes), self.bits)
        codes *= scales(exponents, where)
        return codes

    def _groups(self, sizes: Sizes) -> Groups:
        parts = (sum(sizes),) if self.per == "model" else tuple(size for size in sizes if size)
        return groups(parts, self.block if self.per == "block" else None)


def Sign(per: Literal["layer", "block", "model"] = "layer", block: int = 256) -> Quantized:  # noqa: N802
    """The sign of every coordinate times the mean magnitude: `Quantized` with one bit."""
    return Quantized(1, per, block=block)


def _power_of_two(wanted: Numbers, largest: Numbers) -> Numbers:
    """The nearest power of two to each step, but not above the largest number, whose code then is not 0."""
    tiny = np.ldexp(1.0, LEAST)
    nearest = np.rint(np.log2(np.maximum(wanted, tiny)))
    below = np.floor(np.log2(np.maximum(largest, tiny)))
    return np.ldexp(1.0, np.minimum(nearest, below).astype(np.int64))


def _fitted(codes: Numbers, vector: Numbers, where: Groups, room: Numbers) -> Whole:
    """For each group the exponent of the power of two next to <c, v> / <c, c>."""
    match = np.add.reduceat(np.multiply(codes, vector, out=room), where.starts)
    square = np.add.reduceat(np.multiply(codes, codes, out=room), where.starts)
    best = match / np.maximum(square, 1)
    found = np.rint(np.log2(np.maximum(best, np.ldexp(1.0, EMPTY)))).astype(np.int64)
    return np.where(found < LEAST, EMPTY, np.minimum(found, MOST))
