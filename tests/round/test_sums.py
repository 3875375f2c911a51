"""Sums whose bits do not depend on the order or grouping of their terms."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddyn.round.sums import ExactSums, zeros


def total(sums: ExactSums, terms: torch.Tensor, groups: int = 1) -> torch.Tensor:
    """The sum of the rows, by so many who each add up some of them."""
    parts = []
    for rows in terms.tensor_split(groups):
        parts.append(zeros(terms.shape[1]))
        for row in rows:
            assert sums.add(parts[-1], row)
    return torch.stack(parts).sum(0)


@given(
    st.lists(st.floats(-1e7, 1e7, width=32), min_size=1, max_size=40),
    st.sampled_from([torch.float32, torch.float64]),
    st.randoms(use_true_random=False),
)
def test_any_order_and_grouping_gives_the_same_bits(numbers: list[float], dtype: torch.dtype, random: object) -> None:
    sums, terms = ExactSums(len(numbers)), torch.tensor(numbers, dtype=dtype)[:, None]
    expected = total(sums, terms)
    shuffled = terms[torch.randperm(len(terms))]
    for groups in (1, 2, 3, 7):
        assert torch.equal(total(sums, shuffled, groups), expected)
    stacked = zeros(1)
    assert sums.add(stacked, terms)
    assert torch.equal(stacked, expected)
    assert float(sums.value(expected)) == pytest.approx(math.fsum(terms.flatten().tolist()), rel=1e-15, abs=1e-15)


def test_terms_of_very_different_size() -> None:
    """In float32 a million and its negative would swallow what lies between."""
    terms = torch.tensor([[1e6], [1e-7], [-1e6], [3e-8]])
    sums = ExactSums(4)
    assert float(sums.value(total(sums, terms))) == pytest.approx(1.3e-7, rel=1e-6)


def test_a_million_terms_at_the_limit_stay_exact() -> None:
    sums, count = ExactSums(1_000_000), 1_000_000
    term = torch.tensor([math.nextafter(sums.limit, 0)], dtype=torch.float64)
    one = zeros(1)
    assert sums.add(one, term)
    many = one * count
    assert bool((many.abs() < 2.0**53).all())
    assert float(sums.value(many)) == pytest.approx(count * float(term), rel=1e-15)


@pytest.mark.parametrize("count", [2, 1000, 1_000_000])
def test_both_halves_stay_whole_numbers_that_float64_holds(count: int) -> None:
    """2^b terms below 2^(44-b) are up to 2^44 together, and their coarse halves 2^(44+c); what is left of a term is up
    to 2^-(c+1), so the fine halves are up to 2^b 2^(62-b) 2^-(c+1) = 2^(61-c). Both are at most 2^53 for c = 8 and 9
    only. Terms just below powers of two are the worst ones, for the coarse half near the limit and for the fine one
    near half of a coarse unit."""
    sums, bits = ExactSums(count), (count - 1).bit_length()
    for power in range(-20, 44 - bits + 1):
        term = torch.tensor([math.nextafter(2.0**power, 0)], dtype=torch.float64)
        one = zeros(1)
        assert sums.add(one, term)
        assert bool((one.abs() * count <= 2.0**53).all()), power


def test_a_thousand_terms_are_rounded_to_multiples_of_2_to_the_minus_52() -> None:
    """A thousand times 2^-8 - 2^-52, one by one, is exactly what whole numbers say; were the coarse unit 2^-7, the fine
    halves would pass 2^53 after 512 terms, and every further one would be rounded up by 2^-52."""
    terms = torch.full((1000, 1), 2.0**-8 - 2.0**-52, dtype=torch.float64)
    sums = ExactSums(1000)
    assert float(sums.value(total(sums, terms))) == 1000 * (2**44 - 1) / 2**52


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 2.0**42, -(2.0**42)])
def test_what_has_diverged_is_not_added(bad: float) -> None:
    sums, into = ExactSums(3), zeros(2)
    assert not sums.add(into, torch.tensor([1.0, bad]))
    assert torch.equal(into, zeros(2))


def test_the_terms_are_not_changed() -> None:
    for dtype in (torch.float16, torch.float32, torch.float64):
        terms = torch.randn(3, 5, dtype=dtype)
        before = terms.clone()
        ExactSums(3).add(zeros(5), terms)
        assert torch.equal(terms, before)
