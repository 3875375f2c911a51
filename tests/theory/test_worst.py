"""Worst cases over all states: the eigenvalue is reached and never passed; and what the script on SCAFFOLD finds."""

import runpy
from pathlib import Path

import pytest
import torch

from feddyn.theory import exact
from feddyn.theory.problems import Quadratics
from feddyn.theory.verification.lemmas import progress
from feddyn.theory.verification.measure import laboratory_of
from feddyn.theory.verification.rounds import Round
from feddyn.theory.verification.worst import _state, forms, suprema, supremum

SCRIPT = Path(__file__).parents[2] / "examples" / "scaffold_lag.py"


def test_forms_and_their_largest_ratio() -> None:
    left, right = forms(lambda v: [v[:, 0] ** 2 + v[:, 0] * v[:, 1], 2 * v[:, 0] ** 2 + v[:, 1] ** 2 / 2], 2)
    assert torch.equal(left, torch.tensor([[1.0, 0.5], [0.5, 0.0]], dtype=torch.float64))
    assert torch.equal(right, torch.tensor([[2.0, 0.0], [0.0, 0.5]], dtype=torch.float64))
    assert supremum(left, right) == pytest.approx((1 + 5**0.5) / 4)  # of [[1/2, 1/2], [1/2, 0]]
    assert supremum(left, -right) == float("inf")
    zero = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert supremum(zero, zero) == pytest.approx(1)
    assert supremum(torch.eye(2, dtype=torch.float64), zero) == float("inf")


def test_no_state_passes_the_supremum() -> None:
    """A thousand random states stay below it, and one of them comes near."""
    losses = Quadratics(3, 1, mu=0.1, spread=0, seed=0)
    theorem = exact.Convex.at_best(losses.L, losses.mu, 3, 1)
    laboratory = laboratory_of(theorem, losses)
    v = torch.randn(1000, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    v[:, 1:] *= 10.0 ** torch.linspace(-4, 2, 1000, dtype=torch.float64).unsqueeze(-1)
    claim = progress(Round(laboratory, _state(v, losses, theorem.alpha), 1, theorem.alpha), theorem)
    largest = suprema(laboratory, theorem)["progress"]
    assert 0.8 * largest <= claim.ratio <= largest * (1 + 1e-9)


def test_scaffolds_lag_is_bounded_as_its_paper_says_and_settles_as_feddyns() -> None:
    """The finding in docs/theory.md: Lemma 17 holds in all states for the steps that it allows, and not for much longer
    ones; with equal steps the lag and FedDyn's C_t end as nearly the same multiple of the squared gradient."""
    script = runpy.run_path(str(SCRIPT))
    for m, P, K in ((2, 1, 3), (6, 2, 1), (8, 1, 1)):
        for a in (0.5, 1.0):
            assert script["lemma_17"](m, P, a, K, 1, 0) < 1
            assert script["lemma_17"](m, P, a, K, 12, 0) > 1
        assert script["lemma_12"](m, P, 0) < 1
    early, late = script["histories"](10, 1, [1, 400], paths=50)
    assert early[2] > 1000 * early[1]
    assert late[3] == pytest.approx(late[4], rel=0.2)
