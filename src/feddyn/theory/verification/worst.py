r"""The worst case of an inequality over all histories and all heterogeneities, exactly, on quadratic losses.

On quadratics both sides of a lemma are quadratic forms of the state v = (theta, lambda_1 ... lambda_m, theta_1 ...),
counted from the optimum: with F_k(theta) = 1/2 (theta - theta_*)^T A_k (theta - theta_*) + <g_k, theta>, only
lambda_k - g_k enters, so b_k = 0 stands for every heterogeneity. The largest left / right of all states is then the
largest generalised eigenvalue of the two forms, and a lemma that holds there holds in every round of every run on
quadratics of these curvatures.
"""

from collections.abc import Callable, Sequence

import torch

from feddyn.errors import InputError
from feddyn.theory.problems import Losses, Quadratics
from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.laboratory import Laboratory, State
from feddyn.theory.verification.lemmas import inequalities
from feddyn.theory.verification.rounds import Round


def suprema(laboratory: Laboratory, theorem: Theorem) -> dict[str, float]:
    """The largest left / right of every lemma of a theorem over all states with h = 1/m SUM_k share_k lambda_k."""
    losses = laboratory.losses
    names: list[str] = []

    def sides(v: torch.Tensor) -> list[torch.Tensor]:
        claims = inequalities(Round(laboratory, _state(v, losses, theorem.alpha), theorem.P, theorem.alpha), theorem)
        names[:] = [claim.name for claim in claims]
        return [side for claim in claims for side in (claim.left, claim.right)]

    found = forms(sides, losses.d * (1 + 2 * losses.m))
    return {name: supremum(found[2 * i], found[2 * i + 1]) for i, name in enumerate(names)}


def _state(v: torch.Tensor, losses: Losses, alpha: float) -> State:
    """theta, then lambda_k, then theta_k."""
    if not isinstance(losses, Quadratics) or bool(losses.b.any()):
        raise InputError("suprema: takes quadratics with b_k = 0 (spread = 0), which stand for all others")
    theta, rest = v[:, : losses.d], v[:, losses.d :].unflatten(-1, (2, losses.m, losses.d))
    slopes, models = rest[:, 0], rest[:, 1]
    h = (losses.share * slopes).mean(-2)
    server = {"theta": theta.unsqueeze(-2), "h": h.unsqueeze(-2)}
    return State(server, {"lambda": slopes}, models, theta + h / alpha)


def forms(functions: Callable[[torch.Tensor], Sequence[torch.Tensor]], size: int) -> list[torch.Tensor]:
    """The matrices of quadratic forms, which `functions` evaluates at rows of vectors:  Q(v) = v^T Q v ."""
    eye = torch.eye(size, dtype=torch.float64)
    i, j = torch.triu_indices(size, size, 1)
    found = []
    for values in functions(torch.cat([eye, eye[i] + eye[j]])):
        own = values[:size]
        matrix = torch.diag(own)
        matrix[i, j] = matrix[j, i] = (values[size:] - own[i] - own[j]) / 2
        found.append(matrix)
    return found


def supremum(left: torch.Tensor, right: torch.Tensor) -> float:
    """max v^T left v / v^T right v, infinite where right is negative, or zero and left is not."""
    values, vectors = torch.linalg.eigh(right)
    size = max(float(values[-1]), float(torch.linalg.matrix_norm(left, 2)))
    if float(values[0]) < -1e-11 * size:
        return float("inf")
    kept = values > 1e-11 * size
    lost = vectors[:, ~kept]
    if lost.numel() and float((lost.mT @ left @ lost).diagonal().max()) > 1e-9 * size:
        return float("inf")
    scaled = vectors[:, kept] / values[kept].sqrt()
    return float(torch.linalg.eigvalsh(scaled.mT @ left @ scaled)[-1])
