r"""FedDynOneGD's three theorems: active devices take one gradient step (the paper's Algorithm 2, Theorem 5).

The paper scales these progress lemmas with alpha, so D_t has the weight a = alpha, and rounds kappa_0 down to 1.
"""

import math
from typing import ClassVar, final

from feddyn.theory.theorems import Case, Theorem, Variant


class _OneStepConvex(Theorem):
    """What the two convex parts share; they differ in r, and in whether mu is used."""

    method: ClassVar[Variant] = "FedDynOneGD"

    @property
    def a(self) -> float:
        """alpha."""
        return self.alpha

    @property
    def kappa(self) -> float:
        """kappa = alpha S / ( P/m (1 - 2 L^2/alpha^2) r - mu/(3 alpha) ), with
        S = (L + mu)/alpha^3 + (8/alpha^2 + 4 L^2/alpha^4)(1 + mu/alpha); at most 10 m/P 1/alpha."""
        L, mu, alpha = self.L, self.convexity, self.alpha
        S = (L + mu) / alpha**3 + (8 / alpha**2 + 4 * L**2 / alpha**4) * (1 + mu / alpha)
        kept = self.P / self.m * (1 - 2 * L**2 / alpha**2) * self.r - mu / (3 * alpha)
        return alpha * S / kept

    @property
    def kappa_0(self) -> float:
        """kappa_0 = 2 - 8 L/alpha (1 + mu/alpha) - 4 L P/m r kappa; at least 1."""
        L, mu, alpha = self.L, self.convexity, self.alpha
        return 2 - 8 * L / alpha * (1 + mu / alpha) - 4 * L * self.P / self.m * self.r * self.kappa

    @property
    def rounded(self) -> tuple[float, float]:
        """alpha and 10."""
        return self.alpha, 10


@final
class StronglyConvex(_OneStepConvex):
    r"""Theorem 5, first part:

    E[ l(1/R SUM_{t=0}^{T-1} r^t gamma^t) - l_* ]
        <=  1/r^{T-1} ( alpha ||theta^0 - theta_*||^2 + 10 m/P 1/alpha 1/m SUM_k ||grad L_k(theta_*)||^2 )

    D_t = ||gamma^t - theta_*||^2,  A_t = 1/m SUM_k ||lambda_k^t - grad L_k(theta_*)||^2.
    """

    case: ClassVar[Case] = "strongly convex"
    source: ClassVar[str] = "Theorem 5, strongly convex"

    @staticmethod
    def least_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha >= max(50 m/P mu, 50 L)."""
        return max(50 * m / P * mu, 50 * L)

    @staticmethod
    def recommended_alpha(L: float, mu: float, m: int, P: int) -> float:
        """beta = max(50 m/P mu, 50 L)."""
        return StronglyConvex.least_alpha(L, mu, m, P)

    @property
    def r(self) -> float:
        """r = 1 + mu / (3 alpha)."""
        return 1 + self.mu / (3 * self.alpha)


@final
class Convex(_OneStepConvex):
    r"""Theorem 5, second part, the case mu = 0 of the first:

    E[ l(1/T SUM_{t=0}^{T-1} gamma^t) - l_* ]
        <=  1/T ( alpha ||theta^0 - theta_*||^2 + 10 m/P 1/alpha 1/m SUM_k ||grad L_k(theta_*)||^2 )
    """

    case: ClassVar[Case] = "convex"
    source: ClassVar[str] = "Theorem 5, convex"

    @staticmethod
    def least_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha >= 50 L."""
        return 50 * L

    @staticmethod
    def recommended_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha = 50 L sqrt(m/P)."""
        return 50 * L * math.sqrt(m / P)


@final
class Nonconvex(Theorem):
    r"""Theorem 5, third part, with B_0 as its proof has it:

    E[ 1/T SUM_{t=0}^{T-1} ||grad l(gamma^t)||^2 ]
        <=  1/T ( 4 alpha (l(theta^0) - l_*) + 50 L m/P 1/alpha 1/m SUM_k ||grad L_k(theta^0)||^2 )

    D_t = l(gamma^t) - l_*,  B_t = 1/m SUM_k ||lambda_k^t - grad L_k(gamma^t)||^2. The theorem's own last term,
    L^2 1/m SUM_k ||theta_k^0 - theta^0||^2, bounds B_0 only where theta_k^0 is a stationary point of L_k.
    """

    method: ClassVar[Variant] = "FedDynOneGD"
    case: ClassVar[Case] = "nonconvex"
    source: ClassVar[str] = "Theorem 5, nonconvex"

    @staticmethod
    def least_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha >= 50 L m/P."""
        return 50 * L * m / P

    @staticmethod
    def recommended_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha = 50 L m/P."""
        return 50 * L * m / P

    @property
    def a(self) -> float:
        """4 alpha."""
        return 4 * self.alpha

    @property
    def z(self) -> float:
        """z = ( 2L/alpha^2 + 4 L^3/alpha^4 + L^2/alpha^3 )
        / ( P/(2m-P) - 4P/(2m-P) L^2/alpha^2 - 8 m/P L^2 (1/alpha^2 + 2 L^2/alpha^4) )."""
        L, m, P, alpha = self.L, self.m, self.P, self.alpha
        over = 2 * L / alpha**2 + 4 * L**3 / alpha**4 + L**2 / alpha**3
        left = P / (2 * m - P) * (1 - 4 * L**2 / alpha**2)
        return over / (left - 8 * m / P * L**2 * (1 / alpha**2 + 2 * L**2 / alpha**4))

    @property
    def kappa(self) -> float:
        """kappa = 4 alpha z; at most 50 L m/P 1/alpha."""
        return 4 * self.alpha * self.z

    @property
    def kappa_0(self) -> float:
        """kappa_0 = 4 alpha ( 1/(2 alpha) - L^2/alpha^3 - (2 m/P L^2 z + L/2)(4/alpha^2 + 8 L^2/alpha^4)
        - 4P/(2m-P) L^2/alpha^2 z ); at least 1."""
        L, m, P, alpha = self.L, self.m, self.P, self.alpha
        moved = (2 * m / P * L**2 * self.z + L / 2) * (4 / alpha**2 + 8 * L**2 / alpha**4)
        lagged = 4 * P / (2 * m - P) * L**2 / alpha**2 * self.z
        return 4 * alpha * (1 / (2 * alpha) - L**2 / alpha**3 - moved - lagged)

    @property
    def rounded(self) -> tuple[float, float]:
        """4 alpha and 50 L."""
        return 4 * self.alpha, 50 * self.L
