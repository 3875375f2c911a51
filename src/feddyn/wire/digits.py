"""Whole numbers as bytes: digits, as many to a byte as it holds, and the bytes by the Huffman code of zstandard.

A number is one digit of a base in which few are larger. The largest digit says that a number goes on, and what is left
of these few is written likewise, with a base of its own. A Huffman code has no fractions of bits, and several small
digits in a byte waste less of them: numbers whose frequencies fall, as those of quantised updates do, take 1 to 5% more
than their entropy where at least one in eight is not 0.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import zstandard

from feddyn.errors import InputError

Bytes: TypeAlias = npt.NDArray[np.uint8]
Whole: TypeAlias = npt.NDArray[np.int64]
Unsigned: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
"""Numbers of at least 0, of 1, 2, 4 or 8 bytes: narrow ones take less time and memory."""
BASES = ((2, 8), (3, 5), (4, 4), (6, 3), (16, 2), (256, 1))
"""Bases, and how many digits of each are in a byte. The first byte of numbers is the place of theirs in this list."""
NOTHING, WIDE, GOES_ON = 30, 31, 32
"""The first byte of numbers that are all 0; of large ones, whose lowest bytes are written before what is above them;
and what is added to it where some go on."""
FEW = 10
"""One in so many numbers goes on at the most."""
FORMAT = zstandard.FORMAT_ZSTD1_MAGICLESS
WINDOW = 18
HUFFMAN = zstandard.ZstdCompressionParameters(
    window_log=WINDOW,
    chain_log=6,
    hash_log=6,
    search_log=1,
    min_match=7,
    strategy=zstandard.STRATEGY_FAST,
    format=FORMAT,
    write_content_size=False,
)
"""Hardly any search for strings that come again, which do so only by chance: they would take longer."""


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
        else:
            raise refusal("a count without an end")
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

    def coded(self, count: int) -> Bytes:
        """So many bytes that were coded. A frame that says that it has more is refused before there is room for it."""
        if (length := self.count(count)) == 0:
            return self.take(count)
        frame = self.take(length).tobytes()
        try:
            said = zstandard.get_frame_parameters(frame, FORMAT).content_size
            if said not in (count, zstandard.CONTENTSIZE_UNKNOWN):
                raise refusal(f"{said} bytes instead of {count}")
            decompressor = zstandard.ZstdDecompressor(format=FORMAT, max_window_size=1 << WINDOW)
            found = np.frombuffer(decompressor.decompress(frame, count, allow_extra_data=False), np.uint8)
        except zstandard.ZstdError as error:
            raise refusal(str(error)) from None
        if len(found) != count:
            raise refusal(f"{len(found)} bytes instead of {count}")
        return found

    def numbers(self, count: int, width: int) -> Unsigned:
        """So many numbers of at most `width` bits, in the narrowest type of so many."""
        kind, heading = unsigned(width), self.byte()
        if heading == NOTHING:
            return np.zeros(count, kind)
        if heading == WIDE and width > 8:
            low, value = self.coded(count), self.numbers(count, width - 8).astype(kind)
            value *= kind(256)
            value |= low
            return value
        goes_on, place = divmod(heading, GOES_ON)
        if goes_on > 1 or place >= len(BASES):
            raise refusal(f"numbers of the kind {heading}")
        base, together = BASES[place]
        value = _parted(self.coded(-(-count // together)), base, together, count).astype(kind, copy=False)
        if goes_on:
            places = np.flatnonzero(value == base - 1)
            if not 0 < len(places) <= count // FEW:
                raise refusal(f"{count} numbers, of which {len(places)} go on")
            more = self.numbers(len(places), width)
            if base - 1 + int(more.max(initial=0)) >> width:
                raise refusal(f"a number of more than {width} bits")
            value[places] += more
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


def coded(value: Bytes) -> bytes:
    """Bytes in a Huffman code, after its length; or as they are where that is shorter, after a 0."""
    frame = zstandard.ZstdCompressor(compression_params=HUFFMAN).compress(value.data)
    short = count(len(frame)) + frame
    return short if len(short) < 1 + len(value) else bytes(1) + value.tobytes()


def numbers(value: Unsigned) -> bytes:
    """Whole numbers, in the smallest base in which few go on."""
    largest, kind = int(value.max(initial=0)), value.dtype.type
    if largest == 0:
        return bytes([NOTHING])
    for place, (base, together) in enumerate(BASES):
        if largest < base:
            return bytes([place]) + coded(_joined(value, base, together))
        goes_on = value >= kind(base - 1)
        if np.count_nonzero(goes_on) <= len(value) // FEW:
            places, digits = np.flatnonzero(goes_on), value.copy()
            digits[places] = base - 1
            rest = numbers(value.take(places) - kind(base - 1))
            return bytes([place + GOES_ON]) + coded(_joined(digits, base, together)) + rest
    return bytes([WIDE]) + coded(value.astype(np.uint8)) + numbers(value >> kind(8))


def _joined(digits: Unsigned, base: int, together: int) -> Bytes:
    """Digits, several to a byte: the first byte has the first, and one of each further part of all of them."""
    found = np.zeros(-(-len(digits) // together), np.uint8)
    for place in range(together):
        part = digits[place * len(found) : (place + 1) * len(found)].astype(np.uint8, copy=False)
        found[: len(part)] += part * np.uint8(base**place)
    return found


def _parted(joined: Bytes, base: int, together: int, count: int) -> Bytes:
    """So many digits, in an array of its own."""
    digits, left = np.empty((together, len(joined)), np.uint8), joined
    for place in range(together - 1):
        higher = left // np.uint8(base)
        np.subtract(left, higher * np.uint8(base), out=digits[place])
        left = higher
    digits[-1] = left
    found = digits.reshape(-1)
    if int(left.max(initial=0)) >= base or found[count:].any():
        raise refusal(f"bytes that have no {together} digits of base {base}")
    return found[:count]
