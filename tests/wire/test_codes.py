"""Whole numbers and sums of messages as bytes: read as they were written."""

import numpy as np
import pytest

from feddyn.wire.bits import Reader, count, packed, rice, unsigned
from feddyn.wire.codes import ALL, EMPTY, PACKED, PLACES, groups, read, write
from feddyn.wire.exact import FLOATS, read_exactly, write_exactly

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("mean", [0.0, 0.1, 1.0, 7.0, 300.0, 1e9, 1e14])
@pytest.mark.parametrize("width", [8, 16, 32, 53, 64])
@pytest.mark.parametrize("number", [0, 1, 7, 8, 1000])
def test_rice_codes_are_read_as_they_were_written(mean: float, width: int, number: int) -> None:
    most = 2.0 ** min(width, 53) - 1
    value = np.minimum(RANDOM.exponential(max(mean, 1e-9), number), most).astype(unsigned(width))
    reader = Reader(rice(value))
    found = reader.rice(number, width)
    assert np.array_equal(found, value)
    assert found.dtype == value.dtype
    reader.end()


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("others", [0, 1, 15, 16, 5000])
def test_the_largest_numbers_and_long_tails_are_read_as_they_were_written(width: int, others: int) -> None:
    value = np.zeros(others + 1, unsigned(width))
    value[others // 2] = 2**width - 1
    value[::3] += others > 0
    reader = Reader(rice(value))
    assert np.array_equal(reader.rice(others + 1, width), value)
    reader.end()


@pytest.mark.parametrize("number", [4096, 100_000])
def test_numbers_whose_sum_is_beyond_64_bits_are_read_as_they_were_written(number: int) -> None:
    """4096 times 2^52 is 2^64, which would wrap around to 0."""
    for value in (np.full(number, 2**52, np.uint64), RANDOM.integers(2**50, 2**53, number).astype(np.uint64)):
        reader = Reader(rice(value))
        assert np.array_equal(reader.rice(number, 64), value)
        reader.end()


def test_a_rice_code_takes_the_bits_that_it_should() -> None:
    """0, 1, 2, 9 are with r = 1: 0|0, 0|1, 10|0, 11110|1, 13 bits; with r = 2 it would be 14. Before them stand r and
    how many first bits the longest has; which go on is written in strings of 4, 2, 1, 1 and 1 bits, and at the end the
    lowest bits."""
    first = [0b00110000, 0b01000000, 0b10000000, 0b10000000, 0b00000000]
    assert rice(np.array([0, 1, 2, 9], np.uint8)) == bytes([1, 5, *first, 0b01010000])
    assert rice(np.zeros(1000, np.uint8)) == bytes([255])


@pytest.mark.parametrize("mean", [1.0, 5.0, 40.0])
def test_rice_codes_of_geometric_numbers_are_near_their_entropy(mean: float) -> None:
    """A Rice code of geometric numbers is at most 0.1 bits longer than their entropy."""
    value = (RANDOM.geometric(1 / (1 + mean), 100_000) - 1).astype(np.uint16)
    p = 1 / (1 + mean)
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) / p
    assert entropy <= 8 * len(rice(value)) / len(value) + 0.02 <= entropy + 0.12


@pytest.mark.parametrize("width", [1, 2, 4, 8, 13, 53])
def test_packed_numbers_are_read_as_they_were_written(width: int) -> None:
    value = RANDOM.integers(0, 1 << width, 101).astype(unsigned(width))
    reader = Reader(packed(value, width))
    assert np.array_equal(reader.packed(101, width), value)
    reader.end()


@pytest.mark.parametrize("value", [0, 127, 128, 2**53])
def test_counts_are_read_as_they_were_written(value: int) -> None:
    assert Reader(count(value)).count(2**60) == value


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.3, 0.5, 0.9, 1.0])
def test_codes_are_read_as_they_were_written(width: int, density: float) -> None:
    most = min((1 << width - 1) - 1, 10**6)
    codes = np.where(RANDOM.random(500) < density, RANDOM.integers(-most, most + 1, 500), 0)
    if width == 1:
        codes = np.where(RANDOM.random(500) < 0.5, -1, 1)
    codes = codes.astype(f"i{max(1, width // 8)}")
    exponents = np.array([-126, EMPTY, 0, 127, -3])
    reader = Reader(write(codes, exponents, width))
    found = read(reader, 500, 5, width)
    reader.end()
    assert np.array_equal(found[0], codes)
    assert found[0].dtype == codes.dtype
    assert np.array_equal(found[1], exponents)


@pytest.mark.parametrize("number", [0, 1, 6, 16, 17, 500])
def test_exponents_are_read_as_they_were_written(number: int) -> None:
    exponents = RANDOM.integers(EMPTY, 128, number)
    reader = Reader(write(np.ones(500, np.int8), exponents, 8))
    assert np.array_equal(read(reader, 500, number, 8)[1], exponents)
    reader.end()


@pytest.mark.parametrize(
    ("codes", "kind", "bits"),
    [
        (np.rint(np.random.default_rng(0).laplace(0, 3, 10_000)), ALL, 4.1),
        (np.rint(np.random.default_rng(0).normal(0, 0.4, 10_000)), PLACES, 1.2),
        (np.random.default_rng(0).choice([-2, -1, 1, 2], 10_000, p=[0.1, 0.4, 0.4, 0.1]), PLACES, 2.3),
        (np.random.default_rng(0).choice([-1, 0, 1], 10_000), PLACES, 1.7),
        (np.random.default_rng(0).integers(-127, 128, 10_000), PACKED, 8.1),
    ],
    ids=["a peak at 0", "few", "no zeros", "only signs", "all alike"],
)
def test_codes_are_written_in_the_shortest_way(codes: np.ndarray, kind: int, bits: float) -> None:
    """The way stands after the exponents, of which there are none here."""
    message = write(codes.astype(np.int8), np.zeros(0, np.int64), 8)
    assert message[0] == kind
    assert 8 * len(message) / len(codes) < bits


def test_blocks_do_not_reach_over_layers() -> None:
    assert groups((5, 2, 4), 3).sizes.tolist() == [3, 2, 2, 3, 1]
    assert groups((5, 2, 4), 3).starts.tolist() == [0, 3, 5, 7, 10]


@pytest.mark.parametrize(
    ("vector", "kind"),
    [
        (np.array([0.0, 0.5, -1.25, 3.0]), 1),
        (np.zeros(4), 1),
        (np.array([0.0, -0.0, 2.0**-60, -(2.0**-59)]), 1),
        (np.array([1.0, 3.0, 2.0**9, 1.0]), 2),
        (np.array([1.0, 0.0, 2.0**120, 2.0**119]), 1),
        (np.array([1.0, 1e-30, 0.0, 0.0]), FLOATS),
        (np.array([np.pi, np.e, 0.1, 1e300]), FLOATS),
        (np.array([5e-324, 0.0, 0.0, 0.0]), FLOATS),
    ],
)
def test_vectors_are_written_without_any_loss(vector: np.ndarray, kind: int) -> None:
    message = write_exactly(vector, (1, 3))
    assert message[0] == kind
    reader = Reader(message)
    assert np.array_equal(read_exactly(reader, (1, 3)), vector)
    reader.end()


@pytest.mark.parametrize(("largest", "width"), [(127, 1), (128, 2), (32767, 2), (32768, 4), (2**31 - 1, 4), (2**40, 8)])
def test_multiples_are_as_narrow_as_they_can_be(largest: int, width: int) -> None:
    vector = 2.0**-20 * np.append(RANDOM.integers(-3, 4, 1000), [largest, -largest])
    message = write_exactly(vector, (2, 1000))
    assert message[0] == width
    assert np.array_equal(read_exactly(Reader(message), (2, 1000)), vector)


def test_sums_of_messages_are_short() -> None:
    """Ten sums of ten numbers from -1 to 1, times 2^-9 in one layer and 2^3 in the other: about 3 bits each."""
    whole = RANDOM.integers(-1, 2, (10, 4000)).sum(0)
    vector = whole * np.repeat([2.0**-9, 2.0**3], 2000)
    message = write_exactly(vector, (2000, 2000))
    values, numbers = np.unique(whole, return_counts=True)
    entropy = -(numbers / 4000 * np.log2(numbers / 4000)).sum()
    assert len(values) > 10
    assert 8 * len(message) / 4000 < entropy + 0.25
