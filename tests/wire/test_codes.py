"""Whole numbers and sums of messages as bytes: read as they were written."""

import numpy as np
import pytest

from feddyn.wire.bits import WIDEST, Reader, count, packed, rice
from feddyn.wire.codes import EMPTY, groups, read, write
from feddyn.wire.exact import FLOATS, MULTIPLES, read_exactly, write_exactly

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("mean", [0.0, 0.1, 1.0, 7.0, 300.0, 1e9, 1e14])
@pytest.mark.parametrize("number", [1, 7, 8, 1000])
def test_rice_codes_are_read_as_they_were_written(mean: float, number: int) -> None:
    value = np.minimum(RANDOM.exponential(max(mean, 1e-9), number), 2.0**WIDEST - 1).astype(np.int64)
    reader = Reader(rice(value))
    assert np.array_equal(reader.rice(number), value)
    reader.end()


def test_a_rice_code_takes_the_bits_that_it_should() -> None:
    """0, 1, 2, 9 are with r = 1: 1|0, 1|1, 01|0, 00001|1, 13 bits; with r = 2 it would be 14. Before them stand r and
    the number of zeros, 5; the first parts are a string of 9 bits, the last ones one of 4."""
    assert rice(np.array([0, 1, 2, 9])) == bytes([1, 5, 0b11010000, 0b10000000, 0b01010000])
    assert rice(np.zeros(1000, np.int64)) == bytes([255])


@pytest.mark.parametrize("mean", [1.0, 5.0, 40.0])
def test_rice_codes_of_geometric_numbers_are_near_their_entropy(mean: float) -> None:
    """A Rice code of geometric numbers is at most 0.1 bits longer than their entropy."""
    value = RANDOM.geometric(1 / (1 + mean), 100_000) - 1
    p = 1 / (1 + mean)
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) / p
    assert entropy <= 8 * len(rice(value)) / len(value) + 0.02 <= entropy + 0.12


@pytest.mark.parametrize("width", [1, 2, 4, 8, 13, 53])
def test_packed_numbers_are_read_as_they_were_written(width: int) -> None:
    value = RANDOM.integers(0, 1 << width, 101)
    reader = Reader(packed(value, width))
    assert np.array_equal(reader.packed(101, width), value)
    reader.end()


@pytest.mark.parametrize("value", [0, 127, 128, 2**53])
def test_counts_are_read_as_they_were_written(value: int) -> None:
    assert Reader(count(value)).count(2**60) == value


@pytest.mark.parametrize("width", [1, 2, 4, 8, WIDEST])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.3, 0.5, 0.9, 1.0])
def test_codes_are_read_as_they_were_written(width: int, density: float) -> None:
    most = min((1 << width - 1) - 1, 10**6)
    codes = np.where(RANDOM.random(500) < density, RANDOM.integers(-most, most + 1, 500), 0)
    if width == 1:
        codes = np.where(RANDOM.random(500) < 0.5, -1, 1)
    exponents = np.array([-126, EMPTY, 0, 127, -3])
    reader = Reader(write(codes, exponents, width))
    found = read(reader, 500, 5, width)
    reader.end()
    assert np.array_equal(found[0], codes)
    assert np.array_equal(found[1], exponents)


def test_blocks_do_not_reach_over_layers() -> None:
    assert groups((5, 2, 4), 3).sizes.tolist() == [3, 2, 2, 3, 1]
    assert groups((5, 2, 4), 3).starts.tolist() == [0, 3, 5, 7, 10]


@pytest.mark.parametrize(
    ("vector", "kind"),
    [
        (np.array([0.0, 0.5, -1.25, 3.0]), MULTIPLES),
        (np.zeros(4), MULTIPLES),
        (np.array([0.0, -0.0, 2.0**-60, -(2.0**-59)]), MULTIPLES),
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


def test_sums_of_messages_are_short() -> None:
    """Ten sums of ten numbers from -1 to 1, times 2^-9 in one layer and 2^3 in the other: about 3 bits each."""
    whole = RANDOM.integers(-1, 2, (10, 4000)).sum(0)
    vector = whole * np.repeat([2.0**-9, 2.0**3], 2000)
    message = write_exactly(vector, (2000, 2000))
    values, numbers = np.unique(whole, return_counts=True)
    entropy = -(numbers / 4000 * np.log2(numbers / 4000)).sum()
    assert len(values) > 10
    assert 8 * len(message) / 4000 < entropy + 0.2
