r"""The equalities that the proofs rest on, each as the size of its error relative to the size of its terms."""

from collections.abc import Iterator

import torch

from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.rounds import Round, expected

EXACT = 1e-10
"""The largest relative error of an identity that counts as rounding."""


def identities(round: Round, theorem: Theorem) -> dict[str, float]:
    """Name and relative error of every identity, over all histories and active sets of a round. Where the sides are
    nearly zero, what rounding leaves of the terms that have cancelled in them counts as EXACT."""
    rounding, found = float(round.floor.max().sqrt()), {}
    for name, left, right, gradients in _sides(round, theorem):
        size = float(torch.maximum(left.norm(dim=-1), right.norm(dim=-1)).max())
        size += rounding * (round.alpha if gradients else 1.0) / EXACT
        found[name] = float((left - right).norm(dim=-1).max()) / size
    return found


def _sides(round: Round, theorem: Theorem) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, bool]]:
    """Every identity: its name, its two sides, and whether they are gradients (or models)."""
    after, share, one_step = round.after, round.losses.share, theorem.method == "FedDynOneGD"
    h, theta = after.server["h"].squeeze(-2), after.server["theta"].squeeze(-2)
    yield "h^t = 1/m SUM_k share_k lambda_k^t", h, round.slopes(after).mean(-2), True
    yield "gamma^t = theta^t + h^t / alpha", after.gamma, theta + h / round.alpha, False
    new = round.active.unsqueeze(-1)
    where = round.before.server["theta"] if one_step else round.virtual
    name = "lambda_k^t = grad L_k(theta^{t-1})" if one_step else "lambda_k^t = grad L_k(theta_k^t)"
    yield f"{name}, k active", new * share * after.devices["lambda"], new * round.losses.slopes(where), True
    kept = [~new * state.devices["lambda"] for state in (after, round.before)]
    yield "lambda_k^t = lambda_k^{t-1}, k not active", kept[0], kept[1], True
    step = -round.losses.slopes(where).mean(-2) / round.alpha
    point = "theta^{t-1}" if one_step else "theta~_k^t"
    name = f"E[gamma^t - gamma^{{t-1}}] = -1/(alpha m) SUM_k grad L_k({point})"
    yield name, expected(after.gamma), round.gamma + step, False
