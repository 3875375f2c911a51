"""Whole numbers and sums of messages as bytes: read as they were written."""

import numpy as np
import pytest

from feddyn.wire.codes import (
    ALL,
    DISTANCES,
    EMPTY,
    FLAGS,
    PLACES,
    groups,
    read,
    read_places,
    write,
    write_places,
)
from feddyn.wire.digits import GOES_ON, NOTHING, WIDE, Reader, coded, count, numbers, unsigned
from feddyn.wire.exact import FLOATS, read_exactly, write_exactly

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("mean", [0.0, 0.1, 1.0, 7.0, 300.0, 1e9, 1e14])
@pytest.mark.parametrize("width", [8, 16, 32, 53, 64])
@pytest.mark.parametrize("number", [0, 1, 7, 8, 1000])
def test_numbers_are_read_as_they_were_written(mean: float, width: int, number: int) -> None:
    most = 2.0 ** min(width, 53) - 1
    value = np.minimum(RANDOM.exponential(max(mean, 1e-9), number), most).astype(unsigned(width))
    reader = Reader(numbers(value))
    found = reader.numbers(number, width)
    assert np.array_equal(found, value)
    assert found.dtype == value.dtype
    reader.end()


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("others", [0, 1, 15, 16, 5000])
def test_the_largest_numbers_and_long_tails_are_read_as_they_were_written(width: int, others: int) -> None:
    value = np.zeros(others + 1, unsigned(width))
    value[others // 2] = 2**width - 1
    value[::3] += others > 0
    reader = Reader(numbers(value))
    assert np.array_equal(reader.numbers(others + 1, width), value)
    reader.end()


def test_digits_stand_where_they_should() -> None:
    """0, 1, 2, 5, 0, 1 in base 6, three to a byte, of which there are two: the first has the digits 0, 2, 0 with the
    weights 1, 6, 36, the second 1, 5, 1. That is as short as it gets, so it stands there as it is, after a 0."""
    assert numbers(np.array([0, 1, 2, 5, 0, 1], np.uint8)) == bytes([3, 0, 2 * 6, 1 + 5 * 6 + 36])
    assert numbers(np.zeros(1000, np.uint8)) == bytes([NOTHING])


def test_what_goes_on_stands_after_the_digits() -> None:
    """Of 16 numbers one is not 1: in base 3, where the digit 2 says that it goes on, by 7. Four bytes have a digit each
    of the weights 1, 3, 9 and 27. With another 2 there would be two that go on, which are not few."""
    value = np.ones(16, np.uint8)
    value[3] = 9
    assert numbers(value) == bytes([GOES_ON + 1, 0, 40, 40, 40, 41, 4, 0, 7])
    value[4] = 2
    assert numbers(value)[0] == GOES_ON + 2


@pytest.mark.parametrize("mean", [0.15, 0.3, 1.0, 5.0, 40.0])
def test_geometric_numbers_are_written_near_their_entropy(mean: float) -> None:
    value = (RANDOM.geometric(1 / (1 + mean), 100_000) - 1).astype(np.uint16)
    p = 1 / (1 + mean)
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) / p
    assert 0.98 * entropy <= 8 * len(numbers(value)) / len(value) <= 1.06 * entropy


def test_wide_numbers_are_cut_into_bytes() -> None:
    """Of numbers up to 2^20 the lowest byte has no pattern, and what is above it has 12 bits."""
    value = RANDOM.integers(0, 1 << 20, 10_000).astype(np.uint32)
    message = numbers(value)
    assert message[0] == WIDE
    assert np.array_equal(Reader(message).numbers(10_000, 32), value)
    assert 8 * len(message) / 10_000 < 20.5


@pytest.mark.parametrize("size", [0, 1, 1000, 300_000])
def test_bytes_are_read_as_they_were_written(size: int) -> None:
    for value in (np.zeros(size, np.uint8), RANDOM.integers(0, 256, size).astype(np.uint8)):
        reader = Reader(coded(value))
        assert np.array_equal(reader.coded(size), value)
        reader.end()
        assert len(coded(value)) <= size + 1


@pytest.mark.parametrize(
    ("density", "kind", "bits"),
    [(0.0, DISTANCES, 0.01), (0.01, DISTANCES, 0.09), (0.12, DISTANCES, 0.55), (0.3, FLAGS, 0.9)],
)
def test_places_are_read_as_they_were_written(density: float, kind: int, bits: float) -> None:
    """The entropy of a coordinate that is meant with probability p is 0.08, 0.53 and 0.88 bits."""
    places = np.flatnonzero(RANDOM.random(200_000) < density)
    message = write_places(places, 200_000)
    assert message[0] == kind
    assert 8 * len(message) / 200_000 < bits
    reader = Reader(message)
    assert np.array_equal(read_places(reader, 200_000), places)
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
    ("codes", "kind"),
    [
        (np.rint(np.random.default_rng(0).laplace(0, 3, 100_000)), ALL),
        (np.rint(np.random.default_rng(0).normal(0, 0.4, 100_000)), ALL),
        (np.random.default_rng(0).choice([-1, 0, 1], 100_000, p=[0.05, 0.9, 0.05]), PLACES),
        (np.random.default_rng(0).choice([-2, -1, 1, 2], 100_000, p=[0.1, 0.4, 0.4, 0.1]), ALL),
        (np.random.default_rng(0).choice([-1, 0, 1], 100_000), ALL),
        (np.random.default_rng(0).integers(-127, 128, 100_000), ALL),
    ],
    ids=["a peak at 0", "most are 0", "few", "no zeros", "only signs", "all alike"],
)
def test_codes_are_written_near_their_entropy(codes: np.ndarray, kind: int) -> None:
    """The way stands after the exponents, of which there are none here."""
    message = write(codes.astype(np.int8), np.zeros(0, np.int64), 8)
    _, found = np.unique(codes, return_counts=True)
    entropy = -(found / len(codes) * np.log2(found / len(codes))).sum()
    assert message[0] == kind
    assert 0.99 * entropy < 8 * len(message) / len(codes) < 1.05 * entropy


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
