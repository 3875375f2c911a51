r"""The algorithm itself, not a copy of it, on device losses that are known, over many random paths at once.

A round asks what every device would do were it active (the paper's virtual theta~_k^t), and then settles which of them
were. So one round can be followed over all (m choose P) active sets, which makes expectations exact.
"""

import math
from itertools import combinations
from typing import NamedTuple

import torch

from feddyn.algorithms.base import Algorithm, Problem, Solution, Vector
from feddyn.algorithms.base import State as Named
from feddyn.errors import FeddynError
from feddyn.theory.problems import Losses

MOST = 100_000
"""Active sets that are still enumerated."""


class State(NamedTuple):
    """Where all paths are after a round; the axes before devices and coordinates are paths."""

    server: Named
    """(..., 1, d)"""
    devices: Named
    """(..., m, d)"""
    models: Vector
    """theta_k^t, each device's latest model, (..., m, d)"""
    gamma: Vector
    """gamma^t, the mean of the active devices' models, at the start theta^0, (..., d)"""


class Offer(NamedTuple):
    """What each device does if it is active."""

    devices: Named
    uploads: Named
    models: Vector
    """theta~_k^t, (..., m, d)"""


class Laboratory:
    """An algorithm on losses, devices minimising exactly, or with `one_step` taking one gradient step."""

    def __init__(self, algorithm: Algorithm, losses: Losses, one_step: bool = False):
        self.algorithm, self.losses, self.one_step = algorithm, losses, one_step

    def start(self, theta: Vector, paths: int = 1, models: Vector | None = None) -> State:
        """The state before the first round. `models` are theta_k^0 (m, d); None: theta^0."""
        m, d = self.losses.m, self.losses.d
        server = self.algorithm.server(theta.expand(paths, 1, d).clone())
        devices = self.algorithm.device(theta.expand(paths, m, d).clone())
        latest = theta.expand(paths, m, d) if models is None else models.expand(paths, m, d)
        return State(server, devices, latest.clone(), theta.expand(paths, d).clone())

    def offer(self, state: State) -> Offer:
        """What every device would find and send."""
        down = self.algorithm.broadcast(state.server)
        found = self._solve(self.algorithm.problem(down, state.devices, self.losses.share))
        devices, uploads = self.algorithm.report(down, state.devices, self.losses.share, found)
        return Offer(devices, uploads, found.theta)

    def _solve(self, problem: Problem) -> Solution:
        return self.losses.one_step(problem) if self.one_step else self.losses.minimise(problem)

    def complete(self, state: State, offer: Offer, active: torch.Tensor) -> State:
        """The state after the round in which `active` (..., m) were, all paths the same number; axes before those of
        the paths are alternatives."""
        chosen = active.unsqueeze(-1)
        count = int(active.sum(-1).flatten()[0])
        total = {name: (chosen * upload).sum(-2, keepdim=True) for name, upload in offer.uploads.items()}
        return State(
            self.algorithm.aggregate(state.server, total, count, self.losses.m),
            {name: torch.where(chosen, new, state.devices[name]) for name, new in offer.devices.items()},
            torch.where(chosen, offer.models, state.models),
            (chosen * offer.models).sum(-2) / count,
        )


def draws(paths: int, m: int, P: int, random: torch.Generator) -> torch.Tensor:
    """An active set for every path, P of m devices without replacement, (paths, m)."""
    order = torch.rand(paths, m, generator=random).argsort(-1)
    return order < P


def active_sets(m: int, P: int) -> torch.Tensor:
    """All (m choose P) active sets, equally likely, as alternatives to every path: (sets, 1, m)."""
    if (count := math.comb(m, P)) > MOST:
        raise FeddynError(f"{P} of {m} devices are {count:,} active sets, more than can be enumerated ({MOST:,})")
    active = torch.zeros(count, 1, m, dtype=torch.bool)
    for row, chosen in zip(active, combinations(range(m), P), strict=True):
        row[0, list(chosen)] = True
    return active


def flatten(state: State) -> State:
    """The alternatives of every path as paths of their own."""

    def merge(vector: torch.Tensor) -> torch.Tensor:
        return vector.flatten(0, 1)

    server, devices = ({name: merge(v) for name, v in part.items()} for part in (state.server, state.devices))
    return State(server, devices, merge(state.models), merge(state.gamma))
