"""All theorems on all problems, for several participations and heterogeneities: what `feddyn theory` computes."""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from feddyn.algorithms.base import Vector
from feddyn.engine.pool import each
from feddyn.theory import exact, one_step
from feddyn.theory.problems import Logistic, Losses, Quadratics
from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.audit import Audit, audit
from feddyn.theory.verification.identities import EXACT
from feddyn.theory.verification.measure import Measured, Slope, enumerated, laboratory_of, measured
from feddyn.theory.verification.worst import suprema

THEOREMS: Mapping[str, type[Theorem]] = {
    "feddyn-strongly-convex": exact.StronglyConvex,
    "feddyn-convex": exact.Convex,
    "feddyn-nonconvex": exact.Nonconvex,
    "feddyn-onegd-strongly-convex": one_step.StronglyConvex,
    "feddyn-onegd-convex": one_step.Convex,
    "feddyn-onegd-nonconvex": one_step.Nonconvex,
}
PROBLEMS = ("quadratic", "logistic")
SPREADS = (0.0, 1.0, 20.0)
"""How far apart the devices are; 0: they differ only in their curvature, or in noise."""
DEVICES = 8
ACTIVE = (8, 4, 2, 1)
DIMENSION = 3
DISTANCE = 3.0
"""Distance of the start from the optimum."""
LENGTHS: Mapping[tuple[str, str], float] = {
    ("strongly convex", "quadratic"): 5.0,
    ("strongly convex", "logistic"): 5.0,
    ("convex", "quadratic"): 0.5,
    ("convex", "logistic"): 12.0,
    ("nonconvex", "quadratic"): 12.0,
    ("nonconvex", "logistic"): 25.0,
}
"""Rounds, in units of 1 / log r, or of alpha / (the least curvature of l at its optimum), long enough for a slope. On
the convex quadratics less: what is left until then is in ever flatter directions, and falls as 1/T, not faster."""
FIT = 0.4
"""Slopes are fitted from this part of the rounds on."""
SMALL = 5
"""Devices of what is enumerated; the part of them that is active is that of the large problem, rounded up."""
ENUMERATED = 4
"""T up to which all paths are followed."""
AUDITED = (400, 10, 8)
"""(rounds, check every n-th, paths) of an audit."""


@dataclass(frozen=True)
class Check:
    """A theorem on one problem."""

    name: str
    problem: str
    spread: float
    P: int
    paths: int
    seed: int

    def __str__(self) -> str:
        return f"{self.name}, {self.problem}, spread {self.spread:g}, {self.P} of {DEVICES} active"


class Result(NamedTuple):
    """What a job found: along random paths, by enumeration on a smaller problem of the same kind, and the lemmas;
    `suprema` is their worst case over all histories, of quadratics."""

    measured: Measured
    enumerated: Measured
    audit: Audit
    suprema: Mapping[str, float]

    @property
    def holds(self) -> bool:
        """Whether every bound, inequality and identity does."""
        points = (*self.measured.points, *self.enumerated.points)
        lemmas = not self.audit.violated and all(value <= 1 + EXACT for value in self.suprema.values())
        return lemmas and all(point.holds for point in points)

    @property
    def steep_enough(self) -> bool:
        """Whether the slope is at most the bound's, -1 or -log r, up to two standard errors or a hundredth of it."""
        slope, wanted = self.slope, self.wanted
        sure = slope.error <= 0.1 * abs(wanted)
        return sure and slope.value <= wanted + max(2 * slope.error, 0.01 * abs(wanted))

    @property
    def slope(self) -> Slope:
        """The slope that is fitted to the last rounds."""
        return self.measured.slope(int(FIT * self.measured.points[-1].T))

    @property
    def wanted(self) -> float:
        """The slope of the bound."""
        theorem = self.measured.theorem
        return -math.log(theorem.r) if self.measured.linear else -1.0


def losses(case: str, problem: str, spread: float, m: int, seed: int) -> Losses:
    """A problem of a theorem's class: quadratics of equal devices, or logistic losses of unequal ones."""
    if problem == "quadratic":
        mu = {"strongly convex": 0.2, "convex": 0.0, "nonconvex": -0.05}[case]
        return Quadratics(m, 8 if case == "convex" else DIMENSION, mu=mu, spread=spread, seed=seed)
    decay, rho = (0.1 if case == "strongly convex" else 0.0), (0.2 if case == "nonconvex" else 0.0)
    return Logistic(m, DIMENSION, decay=decay, rho=rho, spread=spread, seed=seed, n=12, unequal=True)


def start(found: Losses) -> Vector:
    """theta^0, at a fixed distance from the optimum."""
    return found.theta_star + DISTANCE / math.sqrt(found.d)


def jobs(names: Sequence[str], paths: int, seed: int) -> list[Check]:
    """Every problem, heterogeneity and participation of these theorems."""
    return [
        Check(name, problem, spread, P, paths, seed)
        for name in names
        for problem in PROBLEMS
        for spread in SPREADS
        for P in ACTIVE
    ]


def do(job: Check) -> Result:
    """Measure, enumerate and audit."""
    kind = THEOREMS[job.name]
    found = losses(kind.case, job.problem, job.spread, DEVICES, job.seed)
    theorem = kind.at_best(found.L, found.mu, DEVICES, job.P)
    T = times(theorem, found, LENGTHS[kind.case, job.problem])
    long = measured(theorem, laboratory_of(theorem, found), start(found), T, paths=job.paths, seed=job.seed)
    m, P = SMALL, math.ceil(SMALL * job.P / DEVICES)
    small = losses(kind.case, job.problem, job.spread, m, job.seed)
    least = kind(small.L, m, P, kind.least_alpha(small.L, small.mu, m, P), small.mu)
    laboratory = laboratory_of(least, small)
    rounds, every, paths = AUDITED
    checked = audit(laboratory, least, start(small), rounds=rounds, every=every, paths=paths, seed=job.seed)
    worst = {}
    if job.problem == "quadratic" and job.spread == 0:
        worst = suprema(laboratory, least)
    return Result(long, enumerated(least, laboratory, start(small), ENUMERATED), checked, worst)


def times(theorem: Theorem, found: Losses, length: float) -> list[int]:
    """The T to measure at: even where convergence is linear, else even in their logarithms."""
    if theorem.r > 1:
        last = length / math.log(theorem.r)
        return sorted({max(1, round(last * i / 24)) for i in range(25)})
    hessian = (found.share.unsqueeze(-1) * found.curvatures(found.theta_star.expand(found.m, found.d))).mean(0)
    last = length * theorem.alpha / float(torch.linalg.eigvalsh(hessian)[0])
    return sorted({round(last ** (i / 40)) for i in range(41)})


def survey(todo: Sequence[Check], workers: int) -> Generator[tuple[Check, Result], None, None]:
    """Each job with its result, as they finish, in so many processes of one thread each."""
    return each(do, sorted(todo, key=lambda job: job.P), workers)
