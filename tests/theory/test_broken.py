"""The checks can fail: each known mistake in a FedDyn violates at least one of them, and the right one none."""

import pytest

from feddyn.theory import exact
from feddyn.theory.problems import Quadratics
from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.audit import Audit, audit
from feddyn.theory.verification.laboratory import Laboratory
from feddyn.theory.verification.measure import laboratory_of, measured
from tests.theory.broken import laboratories

LOSSES = Quadratics(5, 3, mu=0.1, spread=20, seed=0, unequal=True)
START = LOSSES.theta_star + 2
CONVEX = exact.StronglyConvex.at_best(LOSSES.L, LOSSES.mu, LOSSES.m, 2)
NONCONVEX = exact.Nonconvex.at_best(LOSSES.L, LOSSES.mu, LOSSES.m, 2)
MISTAKES = list(laboratories(1.0, LOSSES))

# which parts of the check see a mistake: the identities, the lemmas, the bounds of the theorems
SEEN = {
    "DetachedPenalty": {"identities", "lemmas", "bounds"},
    "NoQuadraticPart": {"identities", "lemmas", "bounds"},
    "FlippedDualInProblem": {"identities", "lemmas", "bounds"},
    "FlippedDualInState": {"identities", "lemmas", "bounds"},
    "NoInverseAlpha": {"identities", "lemmas"},
    "AveragedOverActive": {"identities", "lemmas"},
    "LiteralParenthesis": {"identities", "lemmas", "bounds"},
    "SharesIgnored": {"identities", "lemmas", "bounds"},
    "UnsquaredNorm": {"identities", "lemmas", "bounds"},
    "LostButCommitted": {"identities", "lemmas", "bounds"},
}


def checked(laboratory: Laboratory, theorem: Theorem) -> set[str]:
    """The parts that do not hold."""
    found: Audit = audit(laboratory, theorem, START, rounds=20, paths=4, seed=0)
    parts = {"identities" if name in found.errors else "lemmas" for name in found.violated}
    for times in ([10, 100], [1000]):  # some of them run into infinity on the way to 1000
        points = measured(theorem, laboratory, START, times, paths=4, seed=0).points
        if not all(point.holds for point in points):
            return parts | {"bounds"}
    return parts


@pytest.mark.parametrize("theorem", [CONVEX, NONCONVEX], ids=str)
def test_the_right_one_violates_nothing(theorem: Theorem) -> None:
    assert checked(laboratory_of(theorem, LOSSES), theorem) == set()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_violates_a_check(name: str) -> None:
    """Under both theorems an identity; and what the lemmas and bounds see of it."""
    found = [checked(laboratories(theorem.alpha, LOSSES)[name], theorem) for theorem in (CONVEX, NONCONVEX)]
    for parts in found:
        assert "identities" in parts
    assert set.union(*found) == SEEN[name]


def test_all_mistakes_are_there() -> None:
    assert set(SEEN) == set(MISTAKES)
