"""The theorems: the measured left-hand side is below the bound, falls as fast, and the printed nonconvex one is not."""

import pytest
import torch

from feddyn.theory import exact, one_step
from feddyn.theory.problems import Losses, Quadratics
from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.laboratory import draws
from feddyn.theory.verification.measure import Measured, Point, enumerated, laboratory_of, line, measured, start_of
from feddyn.theory.verification.rounds import Round, expected, mean_square
from feddyn.theory.verification.survey import Check, do, losses
from tests.theory.test_lemmas import PAIRS, PROBLEMS, least
from tests.theory.test_theorems import KINDS


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_the_bound_holds_in_exact_expectation(kind: type[Theorem], name: str) -> None:
    """Over all paths of active sets: 15^3 or 10^3 of them after three rounds."""
    problem = PROBLEMS[name]
    theorem = least(kind, problem, 2)
    for away in (0.01, 3.0):
        found = enumerated(theorem, laboratory_of(theorem, problem), problem.theta_star + away, 4)
        assert [point.T for point in found.points] == [1, 2, 3, 4]
        for point in found.points:
            assert point.value <= point.summed * (1 + 1e-12)
            assert point.summed <= point.sharp <= point.printed


@pytest.mark.parametrize("kind", KINDS)
def test_the_rate_is_the_bounds(kind: type[Theorem]) -> None:
    """On random paths: O(1/T), or linear; on ill-conditioned quadratics the convex value falls as 1/T for long."""
    problem = losses(kind.case, "quadratic", 1.0, 4, 0) if kind.case != "convex" else flat()
    theorem = least(kind, problem, 2)
    end = {"strongly convex": 800, "convex": 1600, "nonconvex": 4000}[kind.case]
    end *= 1 if theorem.method == "FedDyn" else 2
    times = range(end // 20, end + 1, end // 20)
    found = measured(theorem, laboratory_of(theorem, problem), problem.theta_star + 1, times, paths=16, seed=0)
    assert all(point.holds for point in found.points)
    slope = found.slope(int(0.4 * end))
    if found.linear:
        assert slope.value <= 1 / theorem.r - 1
    elif kind.case == "convex":
        assert -1.5 < slope.value <= -1 + 2 * slope.error
    else:
        assert slope.value == pytest.approx(-1, abs=0.01)
    assert slope.error < 0.1 * abs(slope.value)


def flat() -> Losses:
    return Quadratics(4, 6, mu=0, spread=1, seed=0)


def test_the_paths_average_to_the_enumeration() -> None:
    """Two estimates of one expectation: all paths, and random ones with their error."""
    problem = PROBLEMS["quadratics"]
    theorem = exact.Convex.at_best(problem.L, problem.mu, problem.m, 1)
    theta = problem.theta_star + 1
    true = enumerated(theorem, laboratory_of(theorem, problem), theta, 4).points[-1]
    drawn = measured(theorem, laboratory_of(theorem, problem), theta, [4], paths=4000, seed=1).points[-1]
    assert drawn.T == true.T == 4
    assert abs(drawn.value - true.value) <= 4 * drawn.error
    assert 0 < drawn.error < 1e-3 * true.value


@pytest.mark.parametrize(("kind", "method"), [(exact.Nonconvex, "FedDyn"), (one_step.Nonconvex, "FedDynOneGD")])
def test_the_printed_nonconvex_bound_is_false_from_theta_k_equal_theta(kind: type[Theorem], method: str) -> None:
    """Started at the optimum with theta_k^0 = theta^0 its right-hand side is zero, and round 1 moves away."""
    problem = PROBLEMS["saddles"]
    theorem = least(kind, problem, 2)
    assert theorem.method == method
    found = enumerated(theorem, laboratory_of(theorem, problem), problem.theta_star, 3)
    start = start_of(problem, problem.theta_star)
    printed = 3 * theorem.alpha * start.gap + 0.0
    assert printed <= 1e-12
    assert found.points[-1].value > 1e-6
    assert found.points[-1].value <= found.points[-1].sharp  # ours, with the gradients at theta^0, holds


def test_the_papers_nonconvex_potential_falls_from_stationary_theta_k() -> None:
    """Lemma 10 with the paper's C_t = 1/m SUM ||theta_k^t - gamma^t||^2 and kappa: true where grad L_k(theta_k^0) = 0,
    here theta_k^0 = b_k, in every round of random paths; false in the first round where theta_k^0 = theta^0."""
    problem, random = Quadratics(6, 3, L=3.0, mu=-0.1, spread=2, seed=3), torch.Generator().manual_seed(0)
    theorem = least(exact.Nonconvex, problem, 2)
    laboratory, kappa = laboratory_of(theorem, problem), theorem.kappa * problem.L**2

    def slack(round: Round) -> float:
        before = round.gap + kappa * round.spread(round.before)
        after = expected(problem.gap(round.after.gamma)) + kappa * expected(round.spread(round.after))
        return float((before - after - theorem.kappa_0 * round.steepness).min())

    state = laboratory.start(problem.theta_star + 0.5, 4, models=problem.b)
    for _ in range(20):
        round = Round(laboratory, state, 2, theorem.alpha)
        assert slack(round) >= 0
        bound = problem.L**2 * round.spread(state)
        assert bool((mean_square(round.slopes(state) - round.at_gamma) <= bound * (1 + 1e-12)).all())  # B <= L^2 C
        state = laboratory.complete(state, laboratory.offer(state), draws(4, problem.m, 2, random))
    assert slack(Round(laboratory, laboratory.start(problem.theta_star), 2, theorem.alpha)) < 0


def test_a_point_above_its_bound_does_not_hold() -> None:
    assert Point(1, 0.1, 0.1, 0.6, 0.1, 1.0, 3.0).holds
    assert not Point(1, 0.8, 0.1, 0.0, 0.0, 1.0, 3.0).holds  # not by three errors
    assert not Point(1, 0.1, 0.1, 0.8, 0.1, 1.0, 3.0).holds  # the sum before Jensen's inequality
    assert not Point(1, 0.1, 0.1, float("nan"), float("nan"), 1.0, 3.0).holds
    assert not Point(1, 0.5, 0.0, 0.5, 0.0, 1.0, 0.9).holds  # a printed bound below the sharp one


def test_slopes_and_their_errors() -> None:
    """A line is fitted exactly; noise shows in the error."""
    assert line([0.0, 1.0, 2.0], [5.0, 3.0, 1.0]) == pytest.approx((-2, 0), abs=1e-12)
    noisy = line([0.0, 1.0, 2.0, 3.0], [0.0, 1.5, 1.5, 3.0])
    assert noisy.value == pytest.approx(0.9)
    assert noisy.error == pytest.approx((0.45 / 2 / 5) ** 0.5)


def test_a_survey_of_one_setting() -> None:
    result = do(Check("feddyn-strongly-convex", "quadratic", 0.0, 2, 4, 0))
    assert isinstance(result.measured, Measured)
    assert result.holds
    assert result.steep_enough
    assert result.suprema
    wrong = result._replace(suprema={"progress": 1.01})
    assert not wrong.holds
    assert not result._replace(audit=type(result.audit)(violated=["progress"])).holds
