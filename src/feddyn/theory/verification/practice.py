"""How many rounds FedDyn needs at an alpha far from the theorems', measured where L is known."""

from typing import NamedTuple

import torch

from feddyn.algorithms.feddyn import FedDyn
from feddyn.theory.problems import Quadratics
from feddyn.theory.verification.laboratory import Laboratory, draws
from feddyn.theory.verification.survey import ACTIVE, DEVICES, start

CONDITIONS = {"well": (3, 0.2), "badly": (8, 0.0)}
"""Coordinates and mu of quadratics of L = 1: the curvatures of l are within a factor of 2, and of 60."""
MULTIPLES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)
"""The values of alpha that are tried, in units of L."""
REDUCTIONS = (1e-2, 1e-6)
LIMIT = 2000


class Practice(NamedTuple):
    """FedDyn on quadratics at one alpha."""

    condition: str
    P: int
    alpha: float
    paths: int
    seed: int


def trials(paths: int, seed: int) -> list[Practice]:
    """Every condition, participation and alpha."""
    return [
        Practice(condition, P, alpha, paths, seed) for condition in CONDITIONS for P in ACTIVE for alpha in MULTIPLES
    ]


def rounds_needed(trial: Practice) -> list[int | None]:
    """Rounds until the mean of l(gamma^t) - l_* over random paths has fallen to each of REDUCTIONS of its start; None:
    more than LIMIT, or never."""
    d, mu = CONDITIONS[trial.condition]
    losses = Quadratics(DEVICES, d, mu=mu, spread=1, seed=trial.seed)
    laboratory = Laboratory(FedDyn(trial.alpha * losses.L), losses)
    random, state = torch.Generator().manual_seed(trial.seed), laboratory.start(start(losses), trial.paths)
    first = float(losses.gap(state.gamma).mean())
    reached: list[int | None] = [None for _ in REDUCTIONS]
    for t in range(1, LIMIT + 1):
        state = laboratory.complete(state, laboratory.offer(state), draws(trial.paths, DEVICES, trial.P, random))
        gap = float(losses.gap(state.gamma).mean()) / first
        reached = [t if was is None and gap <= part else was for was, part in zip(reached, REDUCTIONS, strict=True)]
        if None not in reached:
            break
    return reached
