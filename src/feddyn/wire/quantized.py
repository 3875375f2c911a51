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
import numpy.typing as npt

from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError, nearest
from feddyn.wire.base import Compressor, Numbers, Sizes
from feddyn.wire.codes import EMPTY, LEAST, MOST, Groups, groups, read, scaled, write
from feddyn.wire.digits import Reader, Whole

STEPS = {8: 0.25, 4: 1.0, 2: 2.0, 1: 1.0}
"""Steps in root mean squares of a group. Updates of networks have heavy tails: what is beyond L steps is sent later."""
BLOCK = 256
PER = ("layer", "block", "model")
FINEST = -100
"""The exponent of the smallest step, where the largest number is about 1: float32 has few digits for smaller ones."""


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
    block: int = field(default=BLOCK, metadata={"unsaid": BLOCK})

    def __post_init__(self) -> None:
        if type(self.bits) is bool or self.bits not in tuple(STEPS):
            raise InputError(f"Quantized: bits must be 8, 4, 2 or 1, not {self.bits!r}")
        object.__setattr__(self, "bits", int(self.bits))  # equal compressors have the same name in checksums
        for name, known in (("per", PER), ("rounding", ("nearest", "stochastic"))):
            if (word := getattr(self, name)) not in known:
                raise InputError(f"Quantized: {name} {word!r} is not known; {nearest(str(word), known)}")
        if self.step is not None:
            require_number("Quantized", "step", self.step)
            object.__setattr__(self, "step", float(self.step))
        require_whole("Quantized", "block", self.block, 1)
        object.__setattr__(self, "block", int(self.block))
        if self.bits == 1 and self.rounding == "stochastic":
            raise InputError("Quantized: rounding must be 'nearest' with one bit, which is a sign, not 'stochastic'")
        if self.block != BLOCK and self.per != "block":
            raise InputError(
                f"Quantized: block {self.block} needs per = 'block', here it is {self.per!r}; leave it out"
            )

    def write(self, vector: Numbers, sizes: Sizes, seed: int) -> bytes:
        """Sums are of numbers divided by about the largest, so that none is too large or small for the vector's type;
        they are added up in the same order on every machine, as neither BLAS nor einsum do."""
        where = self._groups(sizes)
        if len(vector) == 0:
            return b""
        largest = np.maximum(np.maximum.reduceat(vector, where.starts), -np.minimum.reduceat(vector, where.starts))
        most = np.finfo(vector.dtype).maxexp - 2
        unit = int(np.clip(np.frexp(largest.max())[1], -most, most))
        value, largest = (number * vector.dtype.type(2.0**-unit) for number in (vector, largest))
        room = value * value  # large arrays are used again: fresh memory takes longer than the arithmetic
        power = np.add.reduceat(room, where.starts).astype(np.float64)
        some = value != 0
        filled = where.sizes if some.all() else np.add.reduceat(some, where.starts, dtype=np.int64)
        wanted = (self.step or STEPS[self.bits]) * np.sqrt(power / np.maximum(filled, 1))
        steps = np.maximum(_steps(wanted, largest), max(LEAST - unit, FINEST))
        ratio = np.repeat(np.ldexp(value.dtype.type(1), -steps), where.sizes)
        codes = self._rounded(np.multiply(value, ratio, out=ratio), seed)
        exponents = np.minimum(_fitted(ratio, value, where, room, unit), MOST - max(0, self.bits - 2))
        if self.bits > 1 and (exponents == EMPTY).any():
            codes[np.repeat(exponents == EMPTY, where.sizes)] = 0
        return write(codes, exponents, self.bits)

    def _rounded(self, ratio: Numbers, seed: int) -> npt.NDArray[np.int8]:
        """The codes of numbers, which become the same, in place."""
        if self.bits == 1:
            codes: npt.NDArray[np.int8] = 1 - 2 * (ratio < 0).view(np.int8)
            np.copyto(ratio, codes)
            return codes
        if self.rounding == "stochastic":
            random = np.random.PCG64(seed).random_raw(len(ratio)) >> np.uint64(11)
            np.copyto(ratio, np.floor(ratio + random * 2.0**-53))  # a sum in float64 whatever the vector's type
        most = (1 << self.bits - 1) - 1
        np.clip(np.rint(ratio, out=ratio), -most, most, out=ratio)
        return ratio.astype(np.int8)

    def read(self, reader: Reader, sizes: Sizes) -> Numbers:
        where = self._groups(sizes)
        if not sum(sizes):
            return np.zeros(0)
        codes, exponents = read(reader, sum(sizes), len(where.sizes), self.bits)
        return scaled(codes, exponents, where)

    def _groups(self, sizes: Sizes) -> Groups:
        parts = (sum(sizes),) if self.per == "model" else sizes
        return groups(parts, self.block if self.per == "block" else None)


def Sign(per: Literal["layer", "block", "model"] = "layer", block: int = BLOCK) -> Quantized:  # noqa: N802
    """The sign of every coordinate times the mean magnitude: `Quantized` with one bit."""
    return Quantized(1, per, block=block)


def _steps(wanted: Numbers, largest: Numbers) -> Whole:
    """Exponents of the nearest powers of two to steps, but not above the largest number, whose code then is not 0."""
    nearest, below = _exponents(wanted), np.frexp(largest)[1].astype(np.int64) - 1
    found: Whole = np.minimum(nearest, below)
    return found


def _fitted(codes: Numbers, value: Numbers, where: Groups, room: Numbers, unit: int) -> Whole:
    """For each group the exponent of the power of two next to <c, v> / <c, c> * 2^unit."""
    match = np.add.reduceat(np.multiply(codes, value, out=room), where.starts).astype(np.float64)
    square = np.add.reduceat(np.multiply(codes, codes, out=room), where.starts).astype(np.float64)
    best = match / np.maximum(square, 1)
    found = np.where(best > 0, _exponents(best) + unit, EMPTY)
    return np.where(found < LEAST, EMPTY, found)


def _exponents(value: Numbers) -> Whole:
    """Of the power of two next to each number, in the ratio; from its digits, since not all machines have the same
    logarithms."""
    digits, exponents = np.frexp(value)
    found: Whole = exponents - (digits < 2**-0.5).astype(np.int64)
    return found
