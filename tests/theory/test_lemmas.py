"""FedDyn and FedDynOneGD satisfy every identity and lemma of the proofs, in expectation by enumeration, in float64."""

import pytest
import torch

import feddyn
from feddyn.algorithms import FedDyn
from feddyn.theory import exact, one_step
from feddyn.theory.problems import Logistic, Losses, Quadratics
from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.audit import audit
from feddyn.theory.verification.laboratory import Laboratory, active_sets
from feddyn.theory.verification.lemmas import progress
from feddyn.theory.verification.measure import laboratory_of
from feddyn.theory.verification.rounds import Round
from feddyn.theory.verification.worst import suprema
from tests.theory.test_theorems import KINDS

PROBLEMS: dict[str, Losses] = {
    "quadratics": Quadratics(5, 3, mu=0.1, spread=3, seed=0),
    "unequal quadratics": Quadratics(6, 3, mu=0.02, L=7.0, spread=3, seed=1, unequal=True),
    "flat quadratics": Quadratics(5, 6, mu=0, spread=2, seed=2),
    "saddles": Quadratics(6, 3, mu=-0.05, spread=2, seed=3),
    "logistic": Logistic(5, 3, decay=0.1, spread=2, seed=4),
    "unequal logistic": Logistic(5, 3, decay=0.0, spread=2, seed=5, unequal=True),
    "nonconvex logistic": Logistic(5, 3, decay=0.0, rho=0.3, spread=2, seed=6, unequal=True),
}


def applies(kind: type[Theorem], losses: Losses) -> bool:
    return kind.case == "nonconvex" or (losses.convex and (kind.case == "convex" or losses.mu > 0))


def least(kind: type[Theorem], losses: Losses, P: int) -> Theorem:
    alpha = kind.least_alpha(losses.L, losses.mu, losses.m, P)
    return kind(losses.L, losses.m, P, alpha, losses.mu)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_losses_are_what_they_say(name: str) -> None:
    """Gradients and curvatures by autograd, the smoothness along random segments, and a stationary optimum."""
    losses = PROBLEMS[name]
    theta = 3 * torch.randn(losses.m, losses.d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theta.requires_grad_(True)
    (slope,) = torch.autograd.grad(losses.values(theta).sum(), theta, create_graph=True)
    assert torch.allclose(losses.gradients(theta), slope, rtol=0, atol=1e-12)
    hessian = torch.autograd.functional.hessian(lambda v: losses.values(v).sum(), theta)
    assert isinstance(hessian, torch.Tensor)
    blocks = torch.stack([hessian[k, :, k] for k in range(losses.m)])
    assert torch.allclose(losses.curvatures(theta.detach()), blocks, rtol=0, atol=1e-12)
    eigenvalues = torch.linalg.eigvalsh(losses.share.unsqueeze(-1) * blocks)
    assert float(eigenvalues.abs().max()) <= losses.L * (1 + 1e-12)
    if losses.convex:
        assert float(eigenvalues.min()) >= losses.mu - 1e-12
    assert float(losses.pooled_gradient(losses.theta_star).norm()) <= 1e-14
    assert float(losses.share.mean()) == pytest.approx(1)
    away = losses.theta_star + 0.3
    assert float(losses.gap(away)) == pytest.approx(
        float(losses.pooled(away) - losses.pooled(losses.theta_star)), rel=1e-9
    )
    if isinstance(losses, Quadratics):
        assert float(losses.gradients(losses.b).abs().max()) == 0


def test_the_saddles_and_the_bounded_penalty_are_nonconvex() -> None:
    for name in ("saddles", "nonconvex logistic"):
        losses = PROBLEMS[name]
        points = torch.linspace(-4, 4, 81, dtype=torch.float64)[:, None, None].expand(81, losses.m, losses.d)
        assert float(torch.linalg.eigvalsh(losses.curvatures(points)).min()) < -0.01


PAIRS = [(kind, name) for name, losses in PROBLEMS.items() for kind in KINDS if applies(kind, losses)]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_identity_and_lemma_holds(kind: type[Theorem], name: str) -> None:
    """At the least alpha that the theorem allows and at the recommended one, for one, some and all devices active."""
    losses = PROBLEMS[name]
    for P in (1, 2, losses.m):
        for theorem in (least(kind, losses, P), kind.at_best(losses.L, losses.mu, losses.m, P)):
            found = audit(laboratory_of(theorem, losses), theorem, losses.theta_star + 2, rounds=25, paths=4, seed=P)
            assert found.violated == []
            assert max(found.errors.values()) <= 1e-10
            assert found.histories == 100


@pytest.mark.parametrize("kind", KINDS)
def test_every_lemma_holds_in_all_states(kind: type[Theorem]) -> None:
    """Not only along the paths that an algorithm takes: the generalised eigenvalue is at most 1 for any curvatures."""
    mu = {"strongly convex": 0.05, "convex": 0.0, "nonconvex": -0.05}[kind.case]
    for seed, (m, P) in enumerate(((4, 1), (4, 2), (5, 4), (3, 3))):
        losses = Quadratics(m, 2, mu=mu, spread=0, seed=seed, unequal=seed > 0)
        theorem = least(kind, losses, P)
        worst = suprema(laboratory_of(theorem, losses), theorem)
        assert max(worst.values()) <= 1 + 1e-10
        assert worst["step (Lemma 3)"] == pytest.approx(1, abs=1e-6)  # tight: one can tell it from a smaller one
    with pytest.raises(feddyn.InputError, match="spread = 0"):
        suprema(laboratory_of(theorem, Quadratics(m, 2, mu=mu, spread=1, seed=0)), theorem)


@pytest.mark.parametrize("kind", KINDS)
def test_a_converged_run_is_rounding_and_no_violation(kind: type[Theorem]) -> None:
    """Where everything has cancelled to the last digits, what is left is not taken for an error."""
    mu = {"strongly convex": 0.5, "convex": 0.5, "nonconvex": -0.05}[kind.case]
    losses = Quadratics(4, 2, mu=mu, spread=3, seed=0)
    theorem = least(kind, losses, 2)
    found = audit(
        laboratory_of(theorem, losses), theorem, losses.theta_star + 1, rounds=6000, every=97, paths=2, seed=0
    )
    assert found.violated == []


def test_a_wrong_lemma_is_seen() -> None:
    """A kappa_0 that is six times too large is refused in the first round, and Lemmas 3, 5, 7 and 9 with a right-hand
    side a thousandth smaller in some state."""
    losses = Quadratics(5, 3, mu=0.1, spread=0, seed=0)
    theorem = exact.StronglyConvex.at_best(losses.L, losses.mu, losses.m, 2)
    laboratory = laboratory_of(theorem, losses)
    claim = progress(Round(laboratory, laboratory.start(losses.theta_star + 2), 2, theorem.alpha), theorem)
    assert claim.holds
    assert not claim._replace(left=6 * claim.left).holds
    assert claim.ratio > 1 / 6
    worst = suprema(laboratory, theorem)
    for name in ("step (Lemma 3)", "C_t (Lemma 5)", "h (Lemmas 7, 17)", "mean (Lemma 9)"):
        assert worst[name] == pytest.approx(1, abs=1e-3)


def test_lemma_19_holds_as_printed_by_another_proof_than_the_printed_one() -> None:
    """epsilon_t needs at most 3 (1 + 2 L^2/alpha^2) / alpha^2 (B + G) in the worst state: below the printed 4, 8."""
    for seed in range(4):
        losses = Quadratics(4, 2, mu=-0.05, spread=0, seed=seed)
        theorem = least(one_step.Nonconvex, losses, 2)
        ratio = suprema(laboratory_of(theorem, losses), theorem)["epsilon_t (Lemma 19)"]
        assert 0.25 < ratio < 1


def test_active_sets_are_enumerated_once_each_and_not_without_end() -> None:
    sets = active_sets(5, 2)
    assert sets.shape == (10, 1, 5)
    assert len({tuple(row[0].tolist()) for row in sets}) == 10
    assert bool((sets.sum(-1) == 2).all())
    with pytest.raises(feddyn.FeddynError, match="10 of 40 devices are 847,660,528 active sets"):
        active_sets(40, 10)


def test_problems_without_a_minimum_or_a_solution_are_refused() -> None:
    with pytest.raises(feddyn.FeddynError, match="the pooled loss has no minimum at mu = -1"):
        Quadratics(1, 2, mu=-1.0, spread=1, seed=0)
    flat = Logistic(3, 2, decay=0.0, spread=30, seed=0)
    laboratory = Laboratory(FedDyn(1e-9), flat)
    with pytest.raises(feddyn.FeddynError, match="is alpha far too small"):
        laboratory.offer(laboratory.start(flat.theta_star + 50))
