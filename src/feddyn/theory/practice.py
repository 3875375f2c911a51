"""How many rounds FedDyn needs at an alpha far from the theorems', measured where L is known."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from feddyn.algorithms.feddyn import FedDyn
from feddyn.theory.laboratory import Laboratory, draws
from feddyn.theory.survey import ACTIVE, DEVICES, SPREADS, losses, start

ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)
"""In units of L."""
REDUCTION = 1e-6
LIMIT = 2000


class Practice(NamedTuple):
    """FedDyn on the strongly convex quadratics at one alpha, in units of L."""

    P: int
    spread: float
    alpha: float
    paths: int
    seed: int


def trials(paths: int, seed: int, alphas: Sequence[float] = ALPHAS) -> list[Practice]:
    """Every participation, heterogeneity and alpha."""
    return [Practice(P, spread, alpha, paths, seed) for P in ACTIVE for spread in SPREADS for alpha in alphas]


def rounds_needed(trial: Practice) -> int | None:
    """Rounds until the mean of l(gamma^t) - l_* over random paths has fallen to REDUCTION of its start; None: more
    than LIMIT, or never."""
    found = losses("strongly convex", "quadratic", trial.spread, DEVICES, trial.seed)
    laboratory = Laboratory(FedDyn(trial.alpha * found.L), found)
    random, state = torch.Generator().manual_seed(trial.seed), laboratory.start(start(found), trial.paths)
    target = REDUCTION * float(found.gap(state.gamma).mean())
    for t in range(1, LIMIT + 1):
        state = laboratory.settle(state, laboratory.offer(state), draws(trial.paths, DEVICES, trial.P, random))
        if float(found.gap(state.gamma).mean()) <= target:
            return t
    return None
