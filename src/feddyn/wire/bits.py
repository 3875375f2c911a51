"""Whole numbers as bits, without a loop over them: packed with so many bits each, or by a Rice code.

A Rice code writes n >= 0 as n >> r times 0 and then 1, and the lowest r bits as they are. Here the first parts of all
numbers are one string of bits and the lowest bits another, so that many numbers are written, and read, at once.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.errors import InputError

Bytes: TypeAlias = npt.NDArray[np.uint8]
Whole: TypeAlias = npt.NDArray[np.int64]
WIDEST = 53
"""Bits of a number, as many as floats have exactly."""
NOTHING = 255
"""In the place of r: all numbers are 0, and nothing more is written."""


class Reader:
    """The bytes of a message, taken one part after the other; what no encoder has written is refused."""

    def __init__(self, message: bytes):
        self._data, self._at = np.frombuffer(message, np.uint8), 0

    def take(self, count: int) -> Bytes:
        """The next bytes."""
        if count > len(self._data) - self._at:
            raise InputError("the message is cut off: send it again")
        self._at += count
        return self._data[self._at - count : self._at]

    def byte(self) -> int:
        """The next byte as a number."""
        return int(self.take(1)[0])

    def count(self, most: int) -> int:
        """A number of at most `most`."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                break
        if value > most:
            raise refusal(f"a count of {value}, where {most} is the most")
        return value

    def floats(self, count: int, kind: str) -> npt.NDArray[np.float64]:
        """So many floats, of the kind `f4` or `f8`."""
        value = self.take(int(kind[1]) * count).view(f"<{kind}")
        if not np.isfinite(value).all():
            raise refusal("a number that is none")
        return value.astype(np.float64)

    def packed(self, count: int, width: int) -> Whole:
        """So many numbers of `width` bits each."""
        value = np.zeros(count, np.int64)
        for at in range(0, width, 8):
            byte = np.zeros(count, np.uint8)
            for place in range(min(8, width - at)):
                byte |= np.unpackbits(self.take(-(-count // 8)), count=count) << np.uint8(place)
            value |= byte.astype(np.int64) << at
        return value

    def rice(self, count: int) -> Whole:
        """So many numbers in a Rice code."""
        width = self.byte()
        if width == NOTHING:
            return np.zeros(count, np.int64)
        if width > WIDEST or count == 0:
            raise refusal(f"{count} numbers of {width} bits")
        zeros = self.count(4 * count)
        bits = np.unpackbits(self.take(-(-(zeros + count) // 8)), count=zeros + count)
        ends = np.flatnonzero(bits.view(np.bool_))  # which is quicker than of numbers
        if len(ends) != count or ends[-1] != zeros + count - 1:
            raise refusal("other numbers than it says")
        value: Whole = np.diff(ends, prepend=-1) - 1
        if int(value.max()) >> 62 - width:
            raise refusal(f"a number of more than {WIDEST} bits")
        return value << width | self.packed(count, width) if width else value

    def end(self) -> None:
        """Refuse a message that goes on."""
        if self._at != len(self._data):
            raise refusal(f"{len(self._data) - self._at} bytes more than it has to have")


def refusal(what: str) -> InputError:
    """The error of a message that no encoder has made."""
    return InputError(f"the message is not one that was encoded for this model and compressor ({what})")


def count(value: int) -> bytes:
    """A number in seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def packed(value: Whole, width: int) -> bytes:
    """Numbers of `width` bits each: the lowest bits of all of them, then the next ones, and so on."""
    parts = []
    for at in range(0, width, 8):
        byte = (value >> at).astype(np.uint8)
        parts += [np.packbits(byte & np.uint8(1 << place)).tobytes() for place in range(min(8, width - at))]
    return b"".join(parts)


def rice(value: Whole) -> bytes:
    """Numbers of at least 0 in a Rice code, with the r that makes it shortest: of mean a, about log2(a) bits."""
    total, number = int(value.sum()), len(value)
    if total == 0:
        return bytes([NOTHING])
    middle = (total // number).bit_length()  # the best r is this one or the one before
    length, width = min((int((value >> r).sum()) + r * number, r) for r in range(max(0, middle - 1), middle + 1))
    zeros = length - width * number
    bits = np.zeros(zeros + number, np.uint8)
    bits[np.cumsum((value >> width) + 1) - 1] = 1
    return bytes([width]) + count(zeros) + np.packbits(bits).tobytes() + packed(value, width)
