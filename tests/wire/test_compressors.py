"""What every compressor is: a contraction, the same for the same seed, and refused where it cannot be meant."""

from typing import Any

import numpy as np
import pytest
import torch

import feddyn
from feddyn.wire import Compressor, Quantized, RandomK, Sign, TopK

SIZES = (60, 5, 35)
FOUR = Quantized(4)
ALL: list[Any] = [
    pytest.param(Quantized(8), id="8 bits"),
    pytest.param(FOUR, id="4 bits"),
    pytest.param(Quantized(4, "model"), id="4 bits, model"),
    pytest.param(Quantized(4, "block", block=7), id="4 bits, blocks"),
    pytest.param(Quantized(4, step=30.0), id="4 bits, far too coarse"),
    pytest.param(Quantized(8, rounding="stochastic"), id="8 bits, stochastic"),
    pytest.param(Quantized(4, rounding="stochastic"), id="4 bits, stochastic"),
    pytest.param(Quantized(2), id="2 bits"),
    pytest.param(Quantized(2, rounding="stochastic"), id="2 bits, stochastic"),
    pytest.param(Sign(), id="sign"),
    pytest.param(Sign("model"), id="sign, model"),
    pytest.param(TopK(0.1), id="top 10%"),
    pytest.param(TopK(0.1, FOUR), id="top 10% of 4 bits"),
    pytest.param(TopK(0.1, Sign("model")), id="top 10% of signs"),
    pytest.param(TopK(1.0), id="top of all"),
    pytest.param(RandomK(0.1), id="random 10%"),
    pytest.param(RandomK(0.1, FOUR), id="random 10% of 4 bits"),
    pytest.param(TopK(0.5, RandomK(0.5)), id="random half of the top half"),
]
VECTORS = {
    "normal": lambda g: torch.randn(100, generator=g, dtype=torch.float64),
    "heavy tails": lambda g: torch.randn(100, generator=g, dtype=torch.float64) ** 5,
    "one number": lambda g: torch.eye(100, dtype=torch.float64)[7] * -3e-7,
    "all alike": lambda g: torch.full((100,), 1e9, dtype=torch.float64),
    "layers of other sizes": lambda g: torch.randn(100, generator=g, dtype=torch.float64) * torch.logspace(-9, 9, 100),
}


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize("compressor", ALL)
def test_a_compressor_is_a_contraction(compressor: Compressor, kind: str) -> None:
    """E ||Q(v) - v||^2 <= (1 - delta) ||v||^2: in the mean over seeds, of which most compressors do not even depend."""
    vector = VECTORS[kind](torch.Generator().manual_seed(1))
    errors = [float((compressor.sent(vector, SIZES, seed)[0] - vector).square().sum()) for seed in range(100)]
    assert np.mean(errors) < (1 - 1e-3) * float(vector.square().sum())


@pytest.mark.parametrize("compressor", ALL)
def test_zero_stays_zero(compressor: Compressor) -> None:
    assert not compressor.sent(torch.zeros(100), SIZES, 3)[0].any()


@pytest.mark.parametrize("compressor", ALL)
def test_what_is_sent_depends_on_the_vector_and_the_seed_alone(compressor: Compressor) -> None:
    vector = torch.randn(100, generator=torch.Generator().manual_seed(2))
    message = compressor.encode(vector, SIZES, 5)
    assert compressor.encode(vector.clone(), SIZES, 5) == message
    arrived, carried = compressor.sent(vector, SIZES, 5)
    assert carried == message
    assert arrived.dtype == vector.dtype
    assert torch.equal(arrived.double(), compressor.decode(message, SIZES))
    random = isinstance(compressor, RandomK) or "stochastic" in repr(compressor) or "RandomK" in repr(compressor)
    assert (compressor.encode(vector, SIZES, 6) == message) != random


def test_rounding_by_hand() -> None:
    """Root mean square 4, so with 4 bits a step of 4: (5, 3, -5, -2, 1) become (1, 1, -1, 0, 0), halves going to the
    even number. <c, v>/<c, c> = 13/3, and the next power of two is 4. With signs it is the mean magnitude, 16/5."""
    vector = torch.tensor([5.0, 3.0, -5.0, -2.0, 1.0, -4.0])
    power = torch.tensor([5.0, 3.0, -5.0, -2.0, 1.0]).square().mean().sqrt()
    assert 2**1.5 < power < 2**2.5
    found = Quantized(4).sent(vector, (5, 1))[0]
    assert found.tolist() == [4, 4, -4, 0, 0, -4]
    assert Sign().sent(vector, (5, 1))[0].tolist() == [4, 4, -4, -4, 4, -4]
    assert TopK(0.5).sent(vector, (5, 1))[0].tolist() == [5, 0, -5, 0, 0, -4]


@pytest.mark.parametrize("size", [0, 100])
def test_nothing_can_be_sent(size: int) -> None:
    """Of an update of zeros no coordinate is among the largest, and there is nothing left for the values."""
    for compressor in (TopK(0.5), TopK(0.5, TopK(0.5)), TopK(0.5, FOUR), RandomK(0.5, TopK(0.5)), FOUR, Sign()):
        arrived, _ = compressor.sent(torch.zeros(size), (size,))
        assert torch.equal(arrived, torch.zeros(size))


@pytest.mark.parametrize("count", [1, 20, 100, 1500])
def test_the_largest_are_sent_however_they_are_spread(count: int) -> None:
    """By a stable order of all magnitudes, which sends the first of equal ones; among them vectors of which every 16th
    number, which is what is looked at first, says nothing of the others."""
    random, size = np.random.default_rng(count), 2000
    misleading = random.normal(0, 1, size)
    misleading[::16] += 100
    for vector in (misleading, random.normal(0, 1, size), random.integers(-3, 4, size).astype(float), np.ones(size)):
        order = np.argsort(-np.abs(vector), kind="stable")[:count]
        expected = np.zeros(size)
        expected[order] = vector[order]
        arrived, _ = TopK(count / size).sent(torch.from_numpy(vector).float(), (size,))
        assert torch.equal(arrived, torch.from_numpy(expected).float())


def test_codes_beyond_the_largest_are_cut_off_there() -> None:
    """999 numbers of 1 and one of 1000, of root mean square 31.6: the step is 32, and 7 steps are the most."""
    vector = torch.ones(1000)
    vector[3] = 1000
    found = Quantized(4).sent(vector, (1000,))[0]
    assert found[3] == 7 * 128  # <c, v>/<c, c> = 1000/7, next to 128
    assert found.count_nonzero() == 1


def test_stochastic_rounding_is_right_in_the_mean() -> None:
    """2,000 draws of numbers between whole steps: their mean is off by at most 4 of its standard deviations."""
    vector = torch.tensor([0.3, -0.7, 1.4, 1.0])  # root mean square 0.93: steps of 1/4
    compressor = Quantized(8, rounding="stochastic")
    mean = torch.stack([compressor.sent(vector, (4,), seed)[0] for seed in range(2000)]).mean(0)
    assert torch.allclose(mean, vector, rtol=0, atol=4 * 0.125 / 2000**0.5)


def test_random_coordinates_are_others_each_time_and_not_scaled_up() -> None:
    vector = torch.arange(1.0, 101.0)
    found = torch.stack([RandomK(0.1).sent(vector, SIZES, seed)[0] for seed in range(200)])
    assert (found.count_nonzero(1) == 10).all()
    assert ((found == 0) | (found == vector)).all()
    assert (found.count_nonzero(0) > 3).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Quantized(0), "bits must be 8, 4, 2 or 1, not 0"),
        (lambda: Quantized(True), "bits must be 8, 4, 2 or 1, not True"),
        (lambda: Quantized([4]), r"bits must be 8, 4, 2 or 1, not \[4\]"),  # type: ignore[arg-type]
        (lambda: Quantized(1, rounding="stochastic"), "rounding must be 'nearest' with one bit"),
        (lambda: Quantized(4, block=7), "block 7 needs per = 'block', here it is 'layer'"),
        (lambda: Quantized(4, "layers"), "did you mean 'layer'"),  # type: ignore[arg-type]
        (lambda: Quantized(4, rounding="up"), "rounding 'up' is not known"),  # type: ignore[arg-type]
        (lambda: Quantized(4, step=0.0), "step must be a finite number above 0"),
        (lambda: Quantized(4, block=0), "block must be a whole number"),
        (lambda: TopK(2.0), "at most 1, not 2.0"),
        (lambda: TopK(0.0), "fraction must be a finite number above 0"),
        (lambda: RandomK(-0.1), "fraction must be a finite number above 0"),
        (lambda: TopK(0.1, 4), "values must be a compressor such as"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_gets_a_sentence(make: Any, words: str) -> None:
    with pytest.raises(feddyn.InputError, match=words):
        make()


def test_vectors_of_another_size_are_refused() -> None:
    with pytest.raises(feddyn.InputError, match="not one of the 100 parameters"):
        FOUR.encode(torch.zeros(99), SIZES)


@pytest.mark.parametrize("compressor", ALL)
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_not_sent(compressor: Compressor, number: float) -> None:
    with pytest.raises(feddyn.InputError, match="NaN or infinite"):
        compressor.encode(torch.tensor([1.0, number, 2.0]), (3,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_vectors_of_other_types_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(feddyn.InputError, match=f"a vector of {dtype} cannot be compressed"):
        FOUR.encode(torch.ones(100, dtype=dtype), SIZES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Quantized(4), Quantized(4.0)),  # type: ignore[arg-type]
        (Quantized(4), Quantized(np.int64(4))),  # type: ignore[arg-type]
        (Quantized(4, step=2), Quantized(4, step=2.0)),
        (Quantized(4, "block", block=7), Quantized(4, "block", block=np.int32(7))),  # type: ignore[arg-type]
        (TopK(1), TopK(1.0)),
        (RandomK(1, Quantized(8, step=1)), RandomK(np.float64(1), Quantized(8, step=1.0))),
    ],
)
def test_equal_compressors_read_each_others_messages(one: Compressor, other: Compressor) -> None:
    vector = torch.randn(100, generator=torch.Generator().manual_seed(0))
    assert one == other
    assert torch.equal(other.decode(one.encode(vector, SIZES), SIZES), one.sent(vector, SIZES)[0].double())


@pytest.mark.parametrize("compressor", ALL)
@pytest.mark.parametrize("number", [3.4e38, 1e-37])
def test_the_largest_and_smallest_numbers_stay_numbers(compressor: Compressor, number: float) -> None:
    """Of float32, all alike and beside others; what arrives is nearer than 0 is."""
    for vector in (torch.full((100,), number), number * torch.randn(100).clamp(-1, 1)):
        found = compressor.sent(vector, SIZES, 1)[0]
        assert found.isfinite().all()
        assert float(((found - vector) / number).square().sum()) < float((vector / number).square().sum())


def test_numbers_beyond_float32_are_sent_as_its_largest() -> None:
    vector = torch.tensor([1e300, -1e300, 1.0], dtype=torch.float64)
    assert TopK(0.7).sent(vector, (3,))[0].tolist() == [np.finfo(np.float32).max, -np.finfo(np.float32).max, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("compressor", ALL)
def test_no_message_is_longer_than_the_vector(compressor: Compressor, size: int, dtype: torch.dtype) -> None:
    """And a byte and a checksum; where the vector is sent as it is, it arrives as it is."""
    vector = torch.randn(size, generator=torch.Generator().manual_seed(0), dtype=dtype)
    arrived, message = compressor.sent(vector, (size,), 1)
    assert len(message) <= vector.nbytes + 5
    assert torch.equal(arrived, vector) or len(message) < vector.nbytes + 5


def test_codes_are_those_of_the_same_numbers_in_float64() -> None:
    """Whatever the unit in which sums are made: rounding changes them where a number is next to a step's half only."""
    vector = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    for compressor in (Quantized(8), FOUR, Quantized(8, rounding="stochastic"), Sign("block", 100)):
        found = compressor.sent(vector, (900, 100), 3)[0]
        for scale in (2.0**-100, 1.0, 2.0**100):
            wide = compressor.sent(scale * vector.double(), (900, 100), 3)[0]
            assert torch.equal(scale * found.double(), wide)
