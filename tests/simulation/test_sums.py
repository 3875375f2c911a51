"""Sums whose bits do not depend on the order or grouping of their terms."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddyn.engine.sums import ExactSums, zeros


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
