r"""The left-hand side of a theorem, measured beside its bound.

    l( 1/R SUM_{t=0}^{T-1} r^t gamma^t ) - l_*   (convex),    1/T SUM_{t=0}^{T-1} ||grad l(gamma^t)||^2   (nonconvex)

and, for convex losses, what the proof bounds before it uses Jensen's inequality, which is more:

    1/R SUM_{t=0}^{T-1} r^t ( l(gamma^t) - l_* )

in expectation: over all paths of active sets where there are few (`enumerated`), else the mean of random paths with its
standard error (`measured`). Slopes are fitted to it: of log against log T, and against T where convergence is linear.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import torch

from feddyn.algorithms.base import Vector
from feddyn.algorithms.feddyn import FedDyn
from feddyn.theory.problems import Losses
from feddyn.theory.theorems import Start, Theorem
from feddyn.theory.verification.laboratory import Laboratory, State, active_sets, draws, flatten
from feddyn.theory.verification.rounds import mean_square, square

GROUPS = 8
"""Groups of paths, from which the error of a slope is taken."""


class Point(NamedTuple):
    """A theorem at one T: the mean left-hand side with its standard error, those of the sum, and both bounds."""

    T: int
    value: float
    error: float
    summed: float
    summed_error: float
    sharp: float
    printed: float

    @property
    def holds(self) -> bool:
        """Whether the means are below the sharp bound by three errors, and that below the printed one."""
        means = (self.value + 3 * self.error, self.summed + 3 * self.summed_error)
        return all(mean <= self.sharp for mean in means) and self.sharp <= self.printed


class Slope(NamedTuple):
    """A fitted slope and its standard error."""

    value: float
    error: float


class Measured(NamedTuple):
    """A theorem on a problem, at rising T. `values` are those of single paths, (T, paths)."""

    theorem: Theorem
    points: Sequence[Point]
    values: torch.Tensor

    @property
    def linear(self) -> bool:
        """Whether the bound falls exponentially."""
        return self.theorem.r > 1

    def slope(self, from_T: int) -> Slope:
        """Slope of log E[left] against log T (or T, where the bound falls exponentially), from some T on."""
        rows = [i for i, point in enumerate(self.points) if from_T <= point.T and point.value > 0]
        x = [float(self.points[i].T) if self.linear else math.log(self.points[i].T) for i in rows]
        fits = [line(x, self.values[rows].mean(-1).log().tolist())]
        if (paths := self.values.shape[1]) >= 2 * GROUPS:
            parts = self.values[rows].split(paths // GROUPS, dim=-1)[:GROUPS]
            fits += [line(x, part.mean(-1).log().tolist()) for part in parts]
        spread = torch.tensor([fit.value for fit in fits[1:]]).std() / math.sqrt(GROUPS) if len(fits) > 1 else 0.0
        return Slope(fits[0].value, math.hypot(fits[0].error, float(spread)))


def line(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Least squares through points, and the standard error of the slope."""
    dx, dy = (torch.tensor(values, dtype=torch.float64) - statistics.fmean(values) for values in (x, y))
    slope = (dx * dy).sum() / dx.square().sum()
    rest = (dy - slope * dx).square().sum() / max(len(x) - 2, 1)
    return Slope(float(slope), float((rest / dx.square().sum()).sqrt()))


def start_of(losses: Losses, theta: Vector) -> Start:
    """What the bounds know of a start."""
    return Start(
        float(square(theta - losses.theta_star)),
        float(mean_square(losses.slopes(losses.theta_star))),
        float(losses.gap(theta)),
        float(mean_square(losses.slopes(theta))),
    )


def measured(
    theorem: Theorem, laboratory: Laboratory, theta: Vector, times: Sequence[int], *, paths: int, seed: int
) -> Measured:
    """A theorem's sides at each T of `times`, over random paths (one, where all devices are active)."""
    random, m, P, losses = torch.Generator().manual_seed(seed), theorem.m, theorem.P, laboratory.losses
    state, left = laboratory.start(theta, 1 if m == P else paths), Left(theorem, losses)
    values, sums = [], []
    for T in range(1, max(times) + 1):
        left.add(state)
        if T in times:
            values.append(left.value)
            sums.append(left.summed)
        active = draws(len(state.gamma), m, P, random)
        state = laboratory.complete(state, laboratory.offer(state), active)
    return _points(theorem, losses, theta, sorted(times), torch.stack(values), torch.stack(sums))


def enumerated(theorem: Theorem, laboratory: Laboratory, theta: Vector, last: int) -> Measured:
    """A theorem's sides at T = 1 ... last, over all (m choose P)^(T-1) paths, equally likely: an exact expectation."""
    losses, sets = laboratory.losses, active_sets(theorem.m, theorem.P)
    state, left = laboratory.start(theta), Left(theorem, losses)
    values, sums = [], []
    for T in range(1, last + 1):
        if T > 1:
            state = flatten(laboratory.complete(state, laboratory.offer(state), sets))
            left.branch(len(sets))
        left.add(state)
        values.append(left.value.mean().reshape(1))
        sums.append(left.summed.mean().reshape(1))
    return _points(theorem, losses, theta, range(1, last + 1), torch.stack(values), torch.stack(sums))


def laboratory_of(theorem: Theorem, losses: Losses) -> Laboratory:
    """FedDyn, or FedDynOneGD, with the theorem's alpha."""
    return Laboratory(FedDyn(theorem.alpha), losses, theorem.method == "FedDynOneGD")


class Left:
    """The left-hand side of a theorem on all paths, as gamma^0, gamma^1, ... come."""

    def __init__(self, theorem: Theorem, losses: Losses):
        self.theorem, self.losses = theorem, losses
        self._weight = 0.0
        self._gamma: torch.Tensor
        self.summed: torch.Tensor
        """1/R SUM r^t G_t on each path."""

    def add(self, state: State) -> None:
        """Go from T-1 to T, by mean_T = mean_{T-1} + r^{T-1}/R_T (x - mean_{T-1}); r^{T-1} alone would overflow."""
        convex = self.theorem.case != "nonconvex"
        G = self.losses.gap(state.gamma) if convex else square(self.losses.pooled_gradient(state.gamma))
        if self._weight == 0:
            self._gamma, self.summed = state.gamma.clone(), G.clone()
        self._weight = 1 + self._weight / self.theorem.r
        self._gamma = self._gamma + (state.gamma - self._gamma) / self._weight
        self.summed = self.summed + (G - self.summed) / self._weight

    def branch(self, sets: int) -> None:
        """Every path becomes so many, alternatives first, as `flatten` orders them."""
        self._gamma, self.summed = self._gamma.repeat(sets, 1), self.summed.repeat(sets)

    @property
    def value(self) -> torch.Tensor:
        """The left side of the theorem's inequality, on each path."""
        return self.summed if self.theorem.case == "nonconvex" else self.losses.gap(self._gamma)


def _points(
    theorem: Theorem,
    losses: Losses,
    theta: Vector,
    times: Sequence[int],
    values: torch.Tensor,
    sums: torch.Tensor,
) -> Measured:
    start, points = start_of(losses, theta), []
    for T, row, summed in zip(times, values, sums, strict=True):
        means = (float(row.mean()), _error(row), float(summed.mean()), _error(summed))
        points.append(Point(T, *means, theorem.sharp(T, start), theorem.printed(T, start)))
    return Measured(theorem, points, values)


def _error(values: torch.Tensor) -> float:
    """The standard error of a mean; none where there is one path, or all of them are in it."""
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else 0.0
