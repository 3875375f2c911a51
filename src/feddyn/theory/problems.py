r"""Device losses of which everything that the theorems ask is known: L, mu, the optimum, gradients and curvatures.

Tensors have devices on axis -2 and coordinates on axis -1; any axes before that are paths of the random active sets.
All is float64.
"""

import math
from abc import ABC, abstractmethod
from typing import final

import torch

from feddyn.algorithms.base import Problem, Solution, Vector
from feddyn.errors import FeddynError

TOLERANCE = 1e-14
"""Gradient of a minimised problem, relative to the terms that it is a sum of, that counts as their rounding."""


class Losses(ABC):
    """The losses L_k of m devices of shares share_k, whose pooled loss is l = 1/m SUM_k share_k L_k.

    The theorems speak of F_k = share_k L_k: `L` and `mu` are theirs.
    """

    share: torch.Tensor
    """(m, 1), of mean 1."""
    L: float
    mu: float
    convex: bool
    theta_star: Vector
    """The minimiser of l; of nonconvex losses the stationary point that Newton's method finds from the origin."""

    @property
    def m(self) -> int:
        return len(self.share)

    @property
    def d(self) -> int:
        return self.theta_star.numel()

    @abstractmethod
    def values(self, theta: Vector) -> torch.Tensor:
        """L_k(theta_k), (..., m)."""

    @abstractmethod
    def gradients(self, theta: Vector) -> torch.Tensor:
        """grad L_k(theta_k), (..., m, d)."""

    @abstractmethod
    def curvatures(self, theta: Vector) -> torch.Tensor:
        """The Hessians of L_k at theta_k, (..., m, d, d)."""

    def slopes(self, theta: Vector) -> torch.Tensor:
        """grad F_k(theta_k) = share_k grad L_k(theta_k)."""
        return self.share * self.gradients(theta)

    def pooled(self, theta: Vector) -> torch.Tensor:
        """l(theta) of vectors (..., d)."""
        return (self.share[:, 0] * self.values(theta.unsqueeze(-2))).mean(-1)

    def gap(self, theta: Vector) -> torch.Tensor:
        """l(theta) - l_*."""
        return self.pooled(theta) - self.pooled(self.theta_star)

    def size(self, theta: Vector) -> torch.Tensor:
        """What gaps near theta are differences of."""
        return self.pooled(theta).abs() + self.pooled(self.theta_star).abs()

    def pooled_gradient(self, theta: Vector) -> torch.Tensor:
        """grad l(theta) of vectors (..., d)."""
        return self.slopes(theta.unsqueeze(-2)).mean(-2)

    def minimise(self, problem: Problem) -> Solution:
        """The exact solutions of the devices' problems (see `Problem`), by Newton's method."""
        theta = problem.start + torch.zeros_like(self.share)
        eye = torch.eye(theta.shape[-1], dtype=theta.dtype)
        tilt = torch.zeros_like(theta) if problem.tilt is None else problem.tilt
        prox = torch.as_tensor(problem.prox, dtype=theta.dtype)
        for _ in range(50):
            gradient = self.gradients(theta)
            whole = problem.penalised_slope(gradient, theta)
            scale = gradient.norm(dim=-1) + tilt.norm(dim=-1) + ((self.L + prox) * theta).norm(dim=-1)
            if bool((whole.norm(dim=-1) <= TOLERANCE * scale).all()):
                return Solution(theta)
            hessian = self.curvatures(theta) + prox.unsqueeze(-1) * eye
            theta = theta - torch.linalg.solve(hessian, whole.unsqueeze(-1)).squeeze(-1)
        raise FeddynError(
            "a device's problem was not solved in 50 Newton steps: is alpha far too small, or theta far off?"
        )

    def one_step(self, problem: Problem) -> Solution:
        """One gradient step of length 1/prox from the start, FedDynOneGD's."""
        theta = problem.start + torch.zeros_like(self.share)
        return Solution(theta - problem.penalised_slope(self.gradients(theta), theta) / problem.prox)


@final
class Quadratics(Losses):
    r"""L_k(theta) = 1/2 (theta - b_k)^T A_k (theta - b_k), with b_k = spread * N(0, I), a stationary point of L_k.

    mu > 0: random eigenvectors; the eigenvalues of share_k A_k are spaced evenly in their logarithms from mu to L.
    mu < 0: as with 0.1 L, but one eigenvalue of each third device is mu: L_k is nonconvex and unbounded below, l not.
    mu = 0: the same eigenvectors and eigenvalues L, L/2, L/4, ... on all devices, of which each device but the first
    lacks a random half: L_k is convex, not strongly, and l so ill-conditioned that its gap falls as 1/T for long.
    """

    def __init__(self, m: int, d: int, *, L: float = 1.0, mu: float, spread: float, seed: int, unequal: bool = False):
        random = torch.Generator().manual_seed(seed)
        self.L, self.mu, self.convex = L, max(mu, 0.0), mu >= 0
        self.share = _shares(m, unequal, random)
        q, _ = torch.linalg.qr(torch.randn(m, d, d, generator=random, dtype=torch.float64))
        least = mu if mu > 0 else 0.1 * L if mu < 0 else L * 0.5 ** (d - 1)
        eigenvalues = torch.logspace(math.log10(least), math.log10(L), d, dtype=torch.float64).repeat(m, 1)
        if mu < 0:
            eigenvalues[::3, 0] = mu
        if mu == 0:
            q = q[:1]
            eigenvalues[1:] *= torch.rand(m - 1, d, generator=random) < 0.5
        self.A: torch.Tensor = q @ torch.diag_embed(eigenvalues / self.share) @ q.mT
        self.b = spread * torch.randn(m, d, generator=random, dtype=torch.float64)
        pooled = (self.share.unsqueeze(-1) * self.A).mean(0)
        if float(torch.linalg.eigvalsh(pooled)[0]) <= 0:
            raise FeddynError(f"the pooled loss has no minimum at mu = {mu:g}: take one nearer to 0, or more devices")
        self.pooled_curvature = pooled
        self.theta_star = torch.linalg.solve(pooled, (self.share * _apply(self.A, self.b)).mean(0))

    def values(self, theta: Vector) -> torch.Tensor:
        return _energy(self.A, theta - self.b)

    def gradients(self, theta: Vector) -> torch.Tensor:
        return _apply(self.A, theta - self.b)

    def curvatures(self, theta: Vector) -> torch.Tensor:
        return self.A

    def size(self, theta: Vector) -> torch.Tensor:
        """The gap itself: it is no difference here."""
        return self.gap(theta) + 1e-13 * self.L * (theta.square().sum(-1) + self.theta_star.square().sum())

    def gap(self, theta: Vector) -> torch.Tensor:
        """1/2 (theta - theta_*)^T (grad^2 l) (theta - theta_*), which does not cancel near the optimum."""
        return _energy(self.pooled_curvature, theta - self.theta_star)


@final
class Logistic(Losses):
    r"""L_k(theta) = 1/n SUM_i log(1 + exp(-y_i x_i^T theta)) + decay/2 ||theta||^2 + rho SUM_j theta_j^2/(1+theta_j^2)

    The curvature of the logistic loss is between 0 and X^T X/(4n), that of the last, bounded term between -rho/2 and
    2 rho: with rho > 0 the losses are nonconvex. The features have X^T X = n I on every device; `spread` moves the
    devices' true models apart. A fifth of the labels is flipped, so that without decay too there is an optimum.
    """

    def __init__(
        self,
        m: int,
        d: int,
        *,
        decay: float,
        spread: float,
        seed: int,
        rho: float = 0.0,
        n: int = 24,
        unequal: bool = False,
    ):
        random = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=random, dtype=torch.float64)

        self.decay, self.rho, self.convex = decay, rho, rho == 0
        self.share = _shares(m, unequal, random)
        x = math.sqrt(n) * torch.linalg.qr(normal(m, n, d))[0]
        truth = normal(1, d, 1) + spread * normal(m, d, 1)
        y = torch.where((x @ truth).squeeze(-1) > 0, 1.0, -1.0).double()
        y[torch.rand(m, n, generator=random) < 0.2] *= -1
        self.yx: torch.Tensor = y.unsqueeze(-1) * x
        self.L = float(self.share.max()) * (1 / 4 + decay + 2 * rho)
        self.mu = float(decay * self.share.min()) if self.convex else 0.0
        self.theta_star = self._optimum(d)

    def values(self, theta: Vector) -> torch.Tensor:
        square = theta.square()
        fit = torch.nn.functional.softplus(-_apply(self.yx, theta)).mean(-1)
        return fit + self.decay / 2 * square.sum(-1) + self.rho * (square / (1 + square)).sum(-1)

    def gradients(self, theta: Vector) -> torch.Tensor:
        wrong = torch.sigmoid(-_apply(self.yx, theta))
        fit = -(wrong.unsqueeze(-2) @ self.yx).squeeze(-2) / self.yx.shape[-2]
        return fit + self.decay * theta + 2 * self.rho * theta / (1 + theta.square()).square()

    def curvatures(self, theta: Vector) -> torch.Tensor:
        wrong = torch.sigmoid(-_apply(self.yx, theta))
        weighted = (wrong * (1 - wrong)).unsqueeze(-1) * self.yx
        square = theta.square()
        bend = self.decay + self.rho * (2 - 6 * square) / (1 + square) ** 3
        return self.yx.mT @ weighted / self.yx.shape[-2] + torch.diag_embed(bend)

    def _optimum(self, d: int) -> Vector:
        """A stationary point: Newton's method with |eigenvalues| from the origin, steps halved until l falls."""
        theta = torch.zeros(d, dtype=torch.float64)
        for _ in range(200):
            gradient = self.pooled_gradient(theta)
            if float(gradient.norm()) <= 1e-15 * self.L:
                break
            hessian = (self.share.unsqueeze(-1) * self.curvatures(theta.expand(self.m, d))).mean(0)
            values, vectors = torch.linalg.eigh(hessian)
            step = vectors @ ((vectors.mT @ gradient) / values.abs().clamp(min=1e-8))
            while self.pooled(theta - step) > self.pooled(theta) + 1e-15:
                step = step / 2
            theta = theta - step
        return theta


def _shares(m: int, unequal: bool, random: torch.Generator) -> torch.Tensor:
    if not unequal:
        return torch.ones(m, 1, dtype=torch.float64)
    drawn = torch.exp(0.5 * torch.randn(m, 1, generator=random, dtype=torch.float64))
    return drawn / drawn.mean()


def _apply(matrices: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Device by device, matrix times vector."""
    return (matrices @ vectors.unsqueeze(-1)).squeeze(-1)


def _energy(matrices: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """1/2 v^T A v."""
    return (vectors * _apply(matrices, vectors)).sum(-1) / 2
