"""The constants of the theorems are what the lemmas add up to, and the printed bounds follow from them."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import feddyn
from feddyn.theory import exact, one_step
from feddyn.theory.theorems import Start, Theorem

KINDS: list[type[Theorem]] = [
    exact.StronglyConvex,
    exact.Convex,
    exact.Nonconvex,
    one_step.StronglyConvex,
    one_step.Convex,
    one_step.Nonconvex,
]


def grid(kind: type[Theorem]) -> Iterator[Theorem]:
    """The theorem from its least alpha on, for all kinds of conditioning and participation."""
    for L, ratio, (m, P), factor in itertools.product(
        (0.01, 1.0, 300.0),
        (1e-6, 0.01, 0.3, 1.0),
        ((1, 1), (2, 1), (10, 10), (7, 2), (100, 1), (1000, 10)),
        (1, 1.5, 40),
    ):
        mu = ratio * L
        yield kind(L, m, P, factor * kind.least_alpha(L, mu, m, P), mu)


@pytest.mark.parametrize(
    ("kind", "least", "recommended"),
    [
        (exact.StronglyConvex, 60, 60),
        (exact.Convex, 50, 60 * 5**0.5),
        (exact.Nonconvex, 200, 300),
        (one_step.StronglyConvex, 125, 125),
        (one_step.Convex, 100, 100 * 5**0.5),
        (one_step.Nonconvex, 500, 500),
    ],
)
def test_the_conditions_on_alpha_are_the_papers(kind: type[Theorem], least: float, recommended: float) -> None:
    """L = 2, mu = 0.5, m = 10, P = 2, so m/P = 5. FedDyn: max(5 * 5 * 0.5, 30 * 2), 25 * 2, 20 * 2 * 5, recommended
    the first, 30 * 2 sqrt(5), 30 * 2 * 5. FedDynOneGD: max(50 * 5 * 0.5, 50 * 2), 50 * 2, 50 * 2 * 5, recommended
    the first, 50 * 2 sqrt(5), the third. Just below the least the theorem is refused."""
    assert kind.at_best(2.0, 0.5, 10, 2).alpha == pytest.approx(recommended, rel=1e-12)
    assert kind(2.0, 10, 2, least, 0.5).alpha == least
    with pytest.raises(feddyn.InputError, match=f"holds for alpha of at least {least}, not"):
        kind(2.0, 10, 2, 0.999 * least, 0.5)


def test_strong_convexity_counts_where_it_is_larger() -> None:
    """L = mu = 1, m/P = 100: 5 * 100 is above 30, and 50 * 100 above 50."""
    assert exact.StronglyConvex.least_alpha(1.0, 1.0, 100, 1) == 500
    assert one_step.StronglyConvex.least_alpha(1.0, 1.0, 100, 1) == 5000


def lemma_sum(t: Theorem) -> tuple[float, float]:
    """kappa and kappa_0 by solving for the weights with which the proof adds its lemmas up, none of them negative.

    Unknown are the weights e of the epsilon lemma and c of the C lemma (A, B), and kappa. The progress lemma needs:
    epsilon_t cancels, C_t gets the weight r kappa, and C_{t-1} the weight kappa.
    """
    L, m, P, alpha, r = t.L, t.m, t.P, t.alpha, t.r
    part, mu = P / m, t.mu if t.case == "strongly convex" else 0.0
    if t.case != "nonconvex" and t.method == "FedDyn":
        # r D_t + 2/alpha G <= D_{t-1} + (1 + L/alpha) epsilon;  Lemma 4;  Lemma 5
        rows = [[1 - 4 * L**2 / alpha**2, -2 * L**2 * part, 0], [0, 1, -r], [8 / alpha**2, 1 - part, -1]]
        e, c, kappa = np.linalg.solve(rows, [1 + L / alpha, 0, 0])
        kappa_0 = 2 / alpha - e * 8 * L / alpha**2 - c * 4 * L * part
    elif t.case != "nonconvex":
        # alpha ( r D_t + 2/alpha G <= D_{t-1} + (L+mu)/alpha^3 A + (1 + mu/alpha) epsilon );  Lemma 14;  Lemma 15
        kept = 1 - part + part * 2 * L**2 / alpha**2
        rows = [[1, 0, 0], [0, 1, -r], [8 / alpha**2 + 4 * L**2 / alpha**4, kept, -1]]
        e, c, kappa = np.linalg.solve(rows, [alpha * (1 + mu / alpha), 0, -(L + mu) / alpha**2])
        kappa_0 = 2 - e * 8 * L / alpha**2 - c * 4 * L * part
    elif t.method == "FedDyn":
        # l_t + G/(2 alpha) <= l_{t-1} + L/2 M + L^2/(2 alpha) epsilon;  M <= epsilon;  Lemma 11;  Lemma 12 for B
        moved = 2 / part * L**2
        new = 2 * P / (2 * m - P) * L**2
        rows = [[1 - 4 * L**2 / alpha**2, -new - moved, 0], [0, 1, -1], [8 / alpha**2, 2 * (m - P) / (2 * m - P), -1]]
        e, c, kappa = np.linalg.solve(rows, [L / 2 + L**2 / (2 * alpha), 0, 0])
        kappa_0 = 1 / (2 * alpha) - e * 4 / alpha**2
    else:
        # 4 alpha ( l_t + (1/(2 alpha) - L^2/alpha^3) G <= l_{t-1} + L^2/alpha^3 B + L/2 epsilon );  Lemma 19;  Lemma 20
        small, kept = 4 / alpha**2 + 8 * L**2 / alpha**4, 2 * m / (2 * m - P) * (1 + part * (2 * L**2 / alpha**2 - 1))
        rows = [[1, -2 / part * L**2, 0], [0, 1, -1], [small, kept, -1]]
        e, c, kappa = np.linalg.solve(rows, [4 * alpha * L / 2, 0, -4 * alpha * L**2 / alpha**3])
        kappa_0 = (
            4 * alpha * (1 / (2 * alpha) - L**2 / alpha**3) - e * small - c * L**2 / alpha**2 * 4 * P / (2 * m - P)
        )
    assert min(e, c) >= 0
    return kappa, kappa_0


@pytest.mark.parametrize("kind", KINDS)
def test_the_constants_are_the_sum_of_the_lemmas(kind: type[Theorem]) -> None:
    for theorem in grid(kind):
        kappa, kappa_0 = lemma_sum(theorem)
        assert theorem.kappa == pytest.approx(kappa, rel=1e-9)
        assert theorem.kappa_0 == pytest.approx(kappa_0, rel=1e-9)
        assert min(kappa, kappa_0) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_printed_bounds_follow_from_the_sharp_ones(kind: type[Theorem]) -> None:
    """Term by term, at every alpha that the theorem allows; and 1/R <= 1/r^{T-1}."""
    for theorem, T in itertools.product(grid(kind), (1, 2, 50)):
        for start in (Start(1, 0, 1, 0), Start(0, 1, 0, 1)):
            assert theorem.sharp(T, start) <= theorem.printed(T, start)


def test_the_printed_sign_in_the_nonconvex_kappa_0_is_not_the_sum_of_the_lemmas() -> None:
    """With -16 L^2 P m the print's kappa_0 is smaller: still true, not what its lemmas give."""
    for t in grid(exact.Nonconvex):
        assert isinstance(t, exact.Nonconvex)
        L, m, P, alpha = t.L, t.m, t.P, t.alpha
        top = alpha**2 * P**2 - 4 * alpha * L * P**2 - 32 * L**2 * m**2 - 24 * L**2 * P**2
        signs = {sign: (top + sign * 16 * L**2 * P * m) / (2 * alpha * t.z) for sign in (1, -1)}
        assert t.kappa_0 == pytest.approx(signs[1], rel=1e-9)
        assert signs[-1] < t.kappa_0


def test_the_recommended_alphas_give_the_rates() -> None:
    """The convex bound at 30 L sqrt(m/P) is O(sqrt(m/P)/T), the nonconvex one at 30 L m/P is O(m/P /T)."""
    start = Start(1.0, 0.25, 0.5, 1.0)
    for kind, power in ((exact.Convex, 0.5), (one_step.Convex, 0.5), (exact.Nonconvex, 1), (one_step.Nonconvex, 1)):
        one, many = (kind.at_best(1.0, 0.0, m, 1).printed(10, start) for m in (100, 10_000))
        assert many / one == pytest.approx(100**power, rel=0.01)


def test_r_sums_to_the_norm() -> None:
    theorem = exact.StronglyConvex.at_best(1.0, 0.5, 4, 2)
    assert 1 / theorem.inverse_R(30) == pytest.approx(sum(theorem.r**t for t in range(30)), rel=1e-12)
    assert 1 / exact.Convex.at_best(1.0, 0.0, 4, 2).inverse_R(30) == pytest.approx(30)
    far = exact.StronglyConvex.at_best(1.0, 1.0, 4, 4)
    assert 0 <= far.sharp(10**6, Start(1, 1, 1, 1)) <= far.printed(10**6, Start(1, 1, 1, 1)) < 1e-300


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1.0, 10, 2, 20.0), "FedDyn, convex: holds for alpha of at least 25, not 20"),
        ((0.0, 10, 2, 30.0), "FedDyn, convex: L must be a finite number above 0, not 0.0"),
        ((1.0, 2, 10, 30.0), "FedDyn, convex: P = 10 devices cannot be active of m = 2"),
        ((1.0, 10, 0, 30.0), "FedDyn, convex: P must be a whole number of at least 1, not 0"),
        ((1.0, 10, 2, 30.0, 2.0), "FedDyn, convex: mu = 2 cannot be above L = 1"),
        ((1.0, 10, 2, 30.0, -1.0), "FedDyn, convex: mu must be a finite number of at least 0, not -1.0"),
    ],
)
def test_a_theorem_refuses_what_it_does_not_cover(arguments: tuple[float, int, int, float], sentence: str) -> None:
    with pytest.raises(feddyn.InputError) as error:
        exact.Convex(*arguments)
    assert str(error.value) == sentence


def test_strong_convexity_needs_mu() -> None:
    with pytest.raises(feddyn.InputError, match="P must be a whole number of at least 1"):
        exact.StronglyConvex.at_best(1.0, 0.1, 4, 0)
    with pytest.raises(feddyn.InputError, match="mu must be a finite number above 0"):
        exact.StronglyConvex(1.0, 4, 2, 30.0)
    for bound in (exact.Convex(1.0, 4, 2, 30.0).sharp, exact.Convex(1.0, 4, 2, 30.0).printed):
        for T in (0, 2.5):
            with pytest.raises(feddyn.InputError, match="T must be a whole number of at least 1"):
                bound(T, Start(1, 1, 1, 1))  # type: ignore[arg-type]
