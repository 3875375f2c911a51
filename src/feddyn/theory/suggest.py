r"""How to choose alpha: what the theorems recommend for a model and its devices, beside what works in practice.

The theorems need L, the largest curvature of any device's share_k L_k anywhere. Here it is the largest |eigenvalue| of
the Hessians at the model's start, over some devices, by power iteration:  v <- H v / ||H v|| , whose ||H v|| rises to
it. L itself may be larger: elsewhere, and on other devices, there may be more curvature.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from feddyn.algorithms.base import Vector
from feddyn.batches import taken
from feddyn.checks import require_number, require_whole
from feddyn.data.population import Population
from feddyn.errors import FeddynError, InputError
from feddyn.models.flat import FlatModel, Loss
from feddyn.round.participation import Participation, Sampler
from feddyn.round.rehearsal import try_out
from feddyn.solvers import SGD
from feddyn.solvers.base import Solve
from feddyn.solvers.work import Work, total_steps
from feddyn.theory import exact, one_step

PRACTICE = (0.001, 0.1)
"""The alphas of the paper's experiments (its appendix), all of them with several epochs of SGD on a device."""
PULL = (0.05, 2.0)
"""alpha * lr * steps in the paper's experiments with 100 devices, the clearest cases."""
FEW = 0.05
"""Part of the devices: where at most so many are active, FedDyn's states grow with a small alpha, and larger ones were
better (docs/results/leaderboard.md)."""
CHUNK = 256
"""Samples whose curvature is computed at a time."""
STILL = 5
"""Steps in a row without a rise that end the power iteration: one alone may be a plateau on which the direction of the
largest eigenvalue has yet to grow out of a random start."""


@dataclass(frozen=True)
class Advice:
    """What `suggest_alpha` found; print it.

    `theory` has the alpha that each theorem recommends (the strongly convex ones where there is weight decay), `exact`
    the range around L in which FedDyn with exact local minimisation was fastest where L is known (docs/theory.md),
    `practice` the paper's own values.
    """

    L: float
    device: str
    """The device with the largest curvature."""
    devices: int
    """How many were tried."""
    m: int
    P: int
    """Active devices of m: for a probability the expected number, of at least one."""
    theory: Mapping[str, float]
    practice: tuple[float, float] = PRACTICE
    reach: float | None = None
    """lr times the steps that a device takes in a round; None: no solver in such steps was given."""

    @property
    def exact(self) -> tuple[float, float]:
        """0.01 L to 3 L: the more the fewer devices are active, the less the worse the loss is conditioned."""
        return 0.01 * self.L, 3 * self.L

    def __str__(self) -> str:
        low, high = self.exact
        lines = [f"L is about {self.L:.3g} at the start: the largest, on device {self.device}, of {self.devices} tried"]
        lines += [f"theory, {self.m} devices of which {self.P} are active, by what your losses are:"]
        lines += [f"  {name}: alpha = {alpha:.3g}" for name, alpha in self.theory.items()]
        lines += [f"exact minimisation on devices, where it was fastest on quadratics: alpha = {low:.2g} to {high:.2g}"]
        lines += [f"SGD on devices, the paper's experiments: alpha = {self.practice[0]:g} to {self.practice[1]:g}"]
        if self.reach:
            least, most = (f"{pull / self.reach:.2g}" for pull in PULL)
            lines += [
                f"this SGD, whose lr * steps is {self.reach:.3g}: alpha = {least} to {most}, with which "
                f"alpha * lr * steps is {PULL[0]:g} to {PULL[1]:g}, as in the paper's experiments"
            ]
        lines += ["with SGD, search the last range first (feddyn sweep); docs/theory.md says why they are so far apart"]
        if self.P / self.m <= FEW:
            lines += [
                f"{self.P} of {self.m} are few: search up to 0.25, and try FedDynM (name = 'feddynm', momentum 0.5)"
            ]
        return "\n".join(lines)


def suggest_alpha(
    model: nn.Module,
    population: Population,
    participation: Participation,
    *,
    loss: Loss = nn.functional.cross_entropy,
    weight_decay: float = 0.0,
    solver: Solve | None = None,
    devices: int = 10,
    samples: int = 256,
    tolerance: float = 0.01,
    iterations: int = 100,
    seed: int = 0,
) -> Advice:
    """Estimate L at the model's start, and say which alpha theory and practice would take.

    participation and loss as for `simulate`; weight_decay as the solver's. solver: an SGD, whose steps are
    taken into account. devices: so many are drawn at random;
    samples: at most so many of each, at random. The power iteration ends after five steps in a row that lift ||H v|| by
    less than `tolerance` of it, or after `iterations`. Whether the losses are convex is for you to know.
    """
    require_number("suggest_alpha", "weight_decay", weight_decay, zero=True)
    require_number("suggest_alpha", "tolerance", tolerance)
    for name, value in (("devices", devices), ("samples", samples), ("iterations", iterations)):
        require_whole("suggest_alpha", name, value, 1)
    require_whole("suggest_alpha", "seed", seed, 0)
    m = population.devices
    P = max(1, round(Sampler(participation, m, 1, seed).expected))
    flat = FlatModel(model, loss)
    data = population.to(flat.theta.dtype, flat.theta.device)
    try_out(flat, data)
    flat.module.eval()  # a curvature without the noise of dropout
    drawn = np.random.default_rng(seed).choice(m, min(devices, m), replace=False).tolist()
    limits = _Limits(samples, tolerance, iterations)
    found = {k: data.share(k) * _curvature(flat, data, k, weight_decay, limits, seed) for k in drawn}
    largest = max(found, key=lambda k: found[k])
    L = found[largest]
    if not L > 0:
        raise FeddynError(
            "suggest_alpha: the loss has no curvature at the model's start, as one of straight pieces (l1_loss) has "
            "none: there is no L to estimate"
        )
    mu = weight_decay * float(data.shares_of(range(m)).min())
    kinds = [exact.Convex, exact.Nonconvex, one_step.Convex, one_step.Nonconvex]
    if mu > 0:
        kinds = [exact.StronglyConvex, *kinds[:2], one_step.StronglyConvex, *kinds[2:]]
    theory = {f"{kind.method}, {kind.case}": kind.recommended_alpha(L, mu, m, P) for kind in kinds}
    return Advice(L, data.name(largest), len(found), m, P, theory, reach=_reach(solver, data))


def _reach(solver: Solve | None, population: Population) -> float | None:
    """How far a device's steps go in a round where its gradients are of length 1, on the average device."""
    if not isinstance(solver, SGD):
        return None
    mean = -(-population.total // population.devices)
    return float(solver.lr) * total_steps(mean, solver.epochs, solver.steps, solver.batch_size)


class _Limits(NamedTuple):
    """Settings for the work on one device."""

    samples: int
    tolerance: float
    iterations: int


def _curvature(
    flat: FlatModel, data: Population, device: int, weight_decay: float, limits: _Limits, seed: int
) -> float:
    """The largest |eigenvalue| of the Hessian of a device's mean loss, weight decay included, at the model's start."""
    x, y = data.samples(device)
    random = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(y), generator=random)[: limits.samples].to(y.device)
    parts = [Work(flat, taken(x, some), y[some], 0, seed, data.transform) for some in rows.split(CHUNK)]
    v = torch.randn(flat.size, generator=random, dtype=torch.float64).to(flat.theta)
    size, still = 0.0, 0
    for _ in range(limits.iterations):
        v = v / v.norm()
        product = torch.stack([_product(work, flat.theta, v) * (work.size / len(rows)) for work in parts]).sum(0)
        v = product + weight_decay * v
        before, size = size, float(v.norm())
        if not np.isfinite(size):
            raise InputError(
                f"suggest_alpha: the curvature of device {data.name(device)} is not finite: check its samples and the "
                "model's parameters"
            )
        still = still + 1 if size - before <= limits.tolerance * size else 0
        if size == 0 or still == STILL:
            break
    return size


def _product(work: Work, theta: Vector, v: Vector) -> Vector:
    """H v, by two passes of autograd; cuDNN's recurrent layers have no second one."""
    point = theta.clone().requires_grad_(True)
    with torch.backends.cudnn.flags(enabled=False):
        (slope,) = torch.autograd.grad(work.loss(point), point, create_graph=True)
        (product,) = torch.autograd.grad(slope, point, grad_outputs=v, materialize_grads=True)
    return product.detach()
