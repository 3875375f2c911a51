r"""One round in expectation: what the lemmas speak of, given everything before the round.

Expectations are over the active set, by enumeration; every quantity is (paths,), one number for each history. Gradients
are those of F_k = share_k L_k, and lambda_k stands for share_k times the device's state.
"""

from functools import cached_property

import torch

from feddyn.algorithms.base import Vector
from feddyn.theory.verification.laboratory import Laboratory, State, active_sets

ROUNDING = 1e-13
"""Rounding of vectors in float64, relative to their size, after many rounds."""


class Round:
    """Round t from a state after round t-1; `before` and `after` (with an axis of active sets in front) are states."""

    def __init__(self, laboratory: Laboratory, before: State, P: int, alpha: float):
        self.losses, self.P, self.alpha, self.before = laboratory.losses, P, alpha, before
        offer = laboratory.offer(before)
        self.virtual = offer.models
        """theta~_k^t"""
        self.active = active_sets(self.m, P)
        self.after = laboratory.complete(before, offer, self.active)

    @cached_property
    def floor(self) -> torch.Tensor:
        """The square of what rounding adds to a model: differences of models below it mean nothing. That of gradients,
        which the states are made of by steps of alpha, is alpha^2 times as large."""
        sizes = [self.losses.theta_star.norm(), self.gamma.norm(dim=-1), self.virtual.norm(dim=-1).amax(-1)]
        sizes += [self.before.models.norm(dim=-1).amax(-1), self.slopes(self.before).norm(dim=-1).amax(-1) / self.alpha]
        return (ROUNDING * sum(sizes, torch.zeros_like(self.gap))).square()

    @property
    def m(self) -> int:
        return self.losses.m

    @property
    def L(self) -> float:  # noqa: N802
        return self.losses.L

    @cached_property
    def gamma(self) -> Vector:
        """gamma^{t-1}"""
        return self.before.gamma

    def slopes(self, state: State) -> torch.Tensor:
        """share_k lambda_k of a state."""
        return self.losses.share * state.devices["lambda"]

    @cached_property
    def at_gamma(self) -> torch.Tensor:
        """grad F_k(gamma^{t-1})"""
        return self.losses.slopes(self.gamma.unsqueeze(-2))

    @cached_property
    def at_optimum(self) -> torch.Tensor:
        """grad F_k(theta_*)"""
        return self.losses.slopes(self.losses.theta_star)

    @cached_property
    def epsilon(self) -> torch.Tensor:
        """epsilon_t = 1/m SUM_k ||theta~_k^t - gamma^{t-1}||^2"""
        return mean_square(self.virtual - self.gamma.unsqueeze(-2))

    @cached_property
    def moved(self) -> torch.Tensor:
        """E ||gamma^t - gamma^{t-1}||^2"""
        return expected(square(self.after.gamma - self.gamma))

    @cached_property
    def gap(self) -> torch.Tensor:
        """l(gamma^{t-1}) - l_*"""
        return self.losses.gap(self.gamma)

    @cached_property
    def steepness(self) -> torch.Tensor:
        """||grad l(gamma^{t-1})||^2"""
        return square(self.at_gamma.mean(-2))

    def distance(self, state: State) -> torch.Tensor:
        """||gamma - theta_*||^2"""
        return square(state.gamma - self.losses.theta_star)

    def error(self, state: State) -> torch.Tensor:
        """The convex C_t = A_t = 1/m SUM_k ||lambda_k^t - grad F_k(theta_*)||^2."""
        return mean_square(self.slopes(state) - self.at_optimum)

    def lag(self, state: State) -> torch.Tensor:
        """B_t = 1/m SUM_k ||lambda_k^t - grad F_k(gamma^t)||^2."""
        return mean_square(self.slopes(state) - self.losses.slopes(state.gamma.unsqueeze(-2)))

    def spread(self, state: State) -> torch.Tensor:
        """The nonconvex C_t = 1/m SUM_k ||theta_k^t - gamma^t||^2."""
        return mean_square(state.models - state.gamma.unsqueeze(-2))


def expected(values: torch.Tensor) -> torch.Tensor:
    """The mean over the active sets."""
    return values.mean(0)


def square(vectors: torch.Tensor) -> torch.Tensor:
    """||v||^2"""
    return vectors.square().sum(-1)


def mean_square(vectors: torch.Tensor) -> torch.Tensor:
    """1/m SUM_k ||v_k||^2"""
    return square(vectors).mean(-1)
