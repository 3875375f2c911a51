"""Messages that nobody encoded, or that were altered: one sentence, no crash, and little more memory than the model."""

import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
import zstandard

import feddyn
from feddyn.wire import Compressor
from feddyn.wire.base import CHECKSUM, checksum
from feddyn.wire.codes import ALL as ALL_OF_THEM
from feddyn.wire.codes import DISTANCES, FLAGS, PLACES, read_places
from feddyn.wire.common import CommonModel, hear
from feddyn.wire.digits import FORMAT, NOTHING, WIDE, Reader, count
from tests.wire.test_compressors import ALL

SIZES = (27_000, 0, 2_999, 1)
SIZE = 30_000
BYTES = 4 * SIZE
"""Of the model."""


def refused_or_read(read: Callable[[], torch.Tensor]) -> None:
    tracemalloc.start()
    with suppress(feddyn.InputError):
        assert read().shape == (SIZE,)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 9 * BYTES  # a vector of float64 is twice the model, one of bits as bytes a quarter


def damaged(message: bytes, dice: random.Random) -> bytes:
    """A message with some bytes changed, cut, doubled or put in."""
    text = bytearray(message)
    for _ in range(dice.randint(1, 4)):
        at, kind = dice.randrange(len(text) + 1), dice.randrange(4)
        if kind == 0 and at < len(text):
            text[at] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        elif kind == 1:
            del text[at : at + dice.randint(1, 50)]
        elif kind == 2:
            text[at:at] = text[at : at + dice.randint(1, 50)]
        else:
            text[at:at] = dice.randbytes(dice.randint(1, 12))
    return bytes(text)


@pytest.mark.parametrize("compressor", ALL)
def test_altered_messages_are_refused(compressor: Compressor) -> None:
    message = compressor.encode(torch.randn(SIZE, generator=torch.Generator().manual_seed(0)), SIZES, 1)
    for at in (0, len(message) // 2, len(message) - 1):
        altered = bytearray(message)
        altered[at] ^= 4
        with pytest.raises(feddyn.InputError, match="cut off or altered"):
            compressor.decode(bytes(altered), SIZES)
    for end in (0, 1, CHECKSUM, len(message) - 1):
        with pytest.raises(feddyn.InputError, match="cut off or altered"):
            compressor.decode(message[:end], SIZES)


@pytest.mark.parametrize("compressor", ALL)
def test_hostile_messages_do_no_harm(compressor: Compressor) -> None:
    """With a right checksum, as an enemy would send them."""
    dice = random.Random(0)
    vector = torch.randn(SIZE, generator=torch.Generator().manual_seed(0))
    bodies = [compressor.encode(scale * vector, SIZES, 1)[:-CHECKSUM] for scale in (1.0, 0.0)]
    hostile = [damaged(dice.choice(bodies), dice) for _ in range(150)]
    hostile += [dice.randbytes(dice.randint(0, 3 * SIZE)) for _ in range(50)]
    hostile += [bytes([first]) * SIZE for first in (0, 1, 2, 127, 128, 255)]
    for body in hostile:
        message = body + checksum(body, repr(compressor))
        refused_or_read(lambda message=message: compressor.decode(message, SIZES))  # type: ignore[misc]


def test_hostile_broadcasts_do_no_harm() -> None:
    dice, compressor = random.Random(1), feddyn.Quantized(4)
    common = CommonModel(compressor, SIZES, {"theta": torch.zeros(SIZE)}, 3)
    theta, generator = torch.zeros(SIZE), torch.Generator().manual_seed(0)
    for number in range(5):
        theta = theta + torch.randn(SIZE, generator=generator)
        sent = common.broadcast({"theta": theta}, number)
        messages: Any = common.messages("theta", sent, {1, number + 1, number + 2})
        common.commit(sent, [0])
    for _ in range(200):
        body = damaged(dice.choice(list(messages.values()))[:-CHECKSUM], dice)
        message = body + checksum(body)
        refused_or_read(lambda message=message: hear(compressor, SIZES, torch.zeros(SIZE), message))  # type: ignore[misc]
    with pytest.raises(feddyn.InputError, match="cut off or altered"):
        hear(compressor, SIZES, torch.zeros(SIZE), messages[1][:-1])


def frame(data: bytes) -> bytes:
    """Bytes as zstandard writes them."""
    how = zstandard.ZstdCompressionParameters(format=FORMAT, write_content_size=False)
    return zstandard.ZstdCompressor(compression_params=how).compress(data)


def repeated(header: bytes, size: int) -> bytes:
    """A frame of one block, so many times the same byte."""
    return header + (3 | size << 3).to_bytes(3, "little") + b"\x05"


def sized(data: bytes) -> bytes:
    return count(len(data)) + data


MANY = 3200


@pytest.mark.parametrize(
    "body",
    [
        bytes([6]) + bytes(MANY + 1),  # no base
        bytes([64]) + bytes(MANY + 1),  # nor this
        bytes([WIDE]) + bytes(MANY + 1),  # 8 bits have nothing above them
        bytes([1, 0]) + bytes([243]) * 640,  # five digits of base 3 are 242 at the most
        bytes([3, 0]) + bytes(1066) + bytes([36]),  # a digit beyond the last number
        bytes([33, 0]) + bytes([242]) * 640 + bytes([NOTHING]),  # all go on
        bytes([32, 0]) + bytes(400) + bytes([32, 0]) * 2000,  # none does, again and again
        bytes([33, 0]) + bytes([2]) * 200 + bytes(440) + bytes([5, 0]) + bytes([254]) * 200,  # 256 in 8 bits
        bytes([5]) + sized(frame(bytes(MANY + 1))),  # more bytes than there are numbers
        bytes([5]) + sized(frame(bytes(MANY - 1))),  # fewer
        bytes([5]) + sized(repeated(bytes([0xE0]) + (10**12).to_bytes(8, "little"), MANY)),  # no room for so many
        bytes([5]) + sized(repeated(bytes([0, 17 << 3]), MANY)),  # a window of 128 MB
        bytes([5]) + sized(frame(bytes(MANY)) + b"more"),
        bytes([5]) + sized(frame(bytes(MANY))[:-1]),
        bytes([5]) + sized(b"no frame"),
    ],
)
def test_numbers_that_nobody_writes_are_refused(body: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(feddyn.InputError, match="not one that was encoded"):
        Reader(body).numbers(MANY, 8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * MANY


def test_few_places_are_few() -> None:
    """All places as if they were few would take five times the model's memory to read, from a dozen bytes."""
    places = bytes([DISTANCES]) + count(SIZE) + bytes([NOTHING])
    with pytest.raises(feddyn.InputError, match="a count of"):
        read_places(Reader(places), SIZE)
    flags = bytes([FLAGS, 0]) + bytes([255]) * (SIZE // 8)
    for body in (bytes([1, 0, 0, 0, PLACES]) + where + bytes([NOTHING]) for where in (places, flags)):
        with pytest.raises(feddyn.InputError, match="not one that was encoded"):
            feddyn.Quantized(8).decode(body + checksum(body, repr(feddyn.Quantized(8))), SIZES)


def test_the_largest_scale_does_not_overflow() -> None:
    body = bytes([1, 127, 0, 0, ALL_OF_THEM, 5, 0]) + bytes([253]) * SIZE
    found = feddyn.Quantized(8).decode(body + checksum(body, repr(feddyn.Quantized(8))), SIZES)
    assert found[0].item() == -127 * 2.0**127


def test_messages_of_versions_before_are_refused() -> None:
    body = bytes([0]) + feddyn.Quantized(4).encode(torch.ones(SIZE), SIZES)[1:-CHECKSUM]
    with pytest.raises(feddyn.InputError, match="not one that was encoded"):
        feddyn.Quantized(4).decode(body + checksum(body, repr(feddyn.Quantized(4))), SIZES)


def test_a_message_of_another_compressor_is_refused() -> None:
    message = feddyn.Quantized(4).encode(torch.ones(SIZE), SIZES)
    with pytest.raises(feddyn.InputError, match="another compressor"):
        feddyn.Quantized(2).decode(message, SIZES)
