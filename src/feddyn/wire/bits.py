"""Whole numbers as bits, without a loop over them: packed with so many bits each, or by a Rice code.

A Rice code writes n >= 0 as n >> r times 1 and then 0, and the lowest r bits as they are. Here the first bits of all
numbers stand together, then the second bits of those that go on, and so on, and after these the lowest bits of all
numbers, the next ones, ...; so many numbers are written, and read, at once. When few numbers go on, they are written by
a Rice code of their own, with another r.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.errors import InputError

Bytes: TypeAlias = npt.NDArray[np.uint8]
Whole: TypeAlias = npt.NDArray[np.int64]
Unsigned: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
"""Numbers of at least 0, of 1, 2, 4 or 8 bytes: narrow ones take less time and memory."""
NOTHING = 255
"""In the place of r: all numbers are 0, and nothing more is written."""
FEW = 16
"""A Rice code goes on in another one when one in so many numbers is left."""


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

    def bits(self, count: int) -> Bytes:
        """So many bits, each a byte of 0 or 1."""
        return np.unpackbits(self.take(-(-count // 8)), count=count)

    def packed(self, count: int, width: int) -> Unsigned:
        """So many numbers of `width` bits each."""
        kind = unsigned(width)
        value = np.zeros(count, kind)
        for at in range(0, width, 8):
            byte = np.zeros(count, np.uint8)
            for place in range(min(8, width - at)):
                byte |= self.bits(count) * np.uint8(1 << place)  # which is ten times quicker than <<
            value |= byte.astype(kind, copy=False) * kind(1 << at)
        return value

    def rice(self, count: int, width: int) -> Unsigned:
        """So many numbers of at most `width` bits in a Rice code."""
        kind = unsigned(width)
        low = self.byte()
        if low == NOTHING:
            return np.zeros(count, kind)
        goes_on, left, ones = list[npt.NDArray[np.bool_]](), count, 0
        for _ in range(self.byte()):
            goes_on.append(self.bits(left).view(np.bool_))  # of which places are found quicker than of numbers
            left = int(np.count_nonzero(goes_on[-1]))
            ones += left
            if ones > 2 * count:  # a larger r would have been shorter
                raise refusal("numbers that are too long")
        if low >= width or left > count // FEW:
            raise refusal(f"{count} numbers of {low} bits and more, of which {left} go on")
        value = self.rice(left, width) if left else np.zeros(0, kind)
        largest = len(goes_on) + (int(value.max()) if left else -1)
        if largest >> width - low:
            raise refusal(f"a number of more than {width} bits")
        for more in reversed(goes_on):
            inner, value = value, np.zeros(len(more), kind)
            value[np.flatnonzero(more)] = inner + kind(1)
        value *= kind(1 << low)
        value |= self.packed(count, low)
        return value

    def end(self) -> None:
        """Refuse a message that goes on."""
        if self._at != len(self._data):
            raise refusal(f"{len(self._data) - self._at} bytes more than it has to have")


def refusal(what: str) -> InputError:
    """The error of a message that no encoder has made."""
    return InputError(f"the message is not one that was encoded for this model and compressor ({what})")


def unsigned(width: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest type of so many bits."""
    return np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint32 if width <= 32 else np.uint64


def count(value: int) -> bytes:
    """A number in seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def packed(value: Unsigned, width: int) -> bytes:
    """Numbers of `width` bits each: the lowest bits of all of them, then the next ones, and so on."""
    return b"".join(np.packbits(_bit(value, place)).tobytes() for place in range(width))


def rice(value: Unsigned) -> bytes:
    """Numbers in a Rice code, with the r that makes it shortest: of mean a, about log2(a) bits.

    Of numbers with the sum T, as many odd ones as `odd`, r one larger takes a bit more each, and leaves (T - odd)/2 of
    the T bits of 1: it pays as long as that is less than T by more than their number.
    """
    number, total = len(value), _sum(value)
    if total == 0:
        return bytes([NOTHING])
    low = list[bytes]()
    while total + (odd := int(np.count_nonzero(bit := _bit(value, len(low))))) > 2 * number:
        low.append(np.packbits(bit).tobytes())
        total = (total - odd) // 2
    left, high = value >> value.dtype.type(len(low)), list[bytes]()
    while len(left) > number // FEW:
        more = left != 0
        high.append(np.packbits(more).tobytes())
        left = left.take(np.flatnonzero(more))  # which is quicker than left[more]
        left -= left.dtype.type(1)
    rest = rice(left) if len(left) else b""
    return b"".join((bytes([len(low), len(high)]), *high, rest, *low))


def _sum(value: Unsigned) -> int:
    """The sum of numbers, however large: of 64 bits in halves, which cannot wrap around; narrow ones in half the
    time."""
    if value.itemsize == 8:
        high, low = value >> np.uint64(32), value & np.uint64(0xFFFFFFFF)
        return (int(high.sum(dtype=np.uint64)) << 32) + int(low.sum(dtype=np.uint64))
    wide = np.uint32 if 8 * value.itemsize + len(value).bit_length() <= 32 else np.uint64
    return int(value.sum(dtype=wide))


def _bit(value: Unsigned, place: int) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = value & value.dtype.type(1 << place) != 0
    return found
