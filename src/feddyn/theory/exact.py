r"""FedDyn's three theorems: active devices minimise exactly (the paper's Algorithm 1).

The progress lemmas are sums of lemmas in `feddyn.theory.verification.lemmas`, scaled so that epsilon_t cancels and
C_{t-1} gets the same weight as C_t; the constants below are what is left of the others.
"""

import math
from typing import ClassVar, final

from feddyn.theory.theorems import Case, Theorem, Variant


@final
class StronglyConvex(Theorem):
    r"""Theorem 3, by Lemma 8:

    E[ l(1/R SUM_{t=0}^{T-1} r^t gamma^t) - l_* ]
        <=  1/r^{T-1} ( 20 alpha ||theta^0 - theta_*||^2 + 400 m/P 1/alpha 1/m SUM_k ||grad L_k(theta_*)||^2 )

    D_t = ||gamma^t - theta_*||^2,  C_t = 1/m SUM_k ||grad L_k(theta_k^t) - grad L_k(theta_*)||^2.
    """

    method: ClassVar[Variant] = "FedDyn"
    case: ClassVar[Case] = "strongly convex"
    source: ClassVar[str] = "Theorem 3, Lemma 8"

    @staticmethod
    def least_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha >= max(5 m/P mu, 30 L)."""
        return max(5 * m / P * mu, 30 * L)

    @staticmethod
    def recommended_alpha(L: float, mu: float, m: int, P: int) -> float:
        """beta = max(5 m/P mu, 30 L), Theorem 1."""
        return StronglyConvex.least_alpha(L, mu, m, P)

    @property
    def r(self) -> float:
        """r = 1 + mu / alpha."""
        return 1 + self.mu / self.alpha

    @property
    def z(self) -> float:
        """z = alpha^3 P + alpha^2 P mu - alpha^2 m mu - 20 alpha L^2 P + 4 L^2 m mu - 20 L^2 P mu."""
        L, m, P, alpha, mu = self.L, self.m, self.P, self.alpha, self.mu
        return alpha**3 * P + alpha**2 * mu * (P - m) - 20 * alpha * L**2 * P + L**2 * mu * (4 * m - 20 * P)

    @property
    def kappa(self) -> float:
        """kappa = 8 m (L + alpha) / z."""
        return 8 * self.m * (self.L + self.alpha) / self.z

    @property
    def kappa_0(self) -> float:
        """kappa_0 = ( 2 alpha^3 P + 2 alpha^2 P mu - 2 alpha^2 m mu - 40 alpha^2 L P - 80 alpha L^2 P
        - 40 alpha L P mu + 8 alpha L m mu + 16 L^2 m mu - 80 L^2 P mu ) / (alpha z)."""
        L, m, P, alpha, mu = self.L, self.m, self.P, self.alpha, self.mu
        cubic = 2 * alpha**3 * P + 2 * alpha**2 * mu * (P - m) - 40 * alpha**2 * L * P - 80 * alpha * L**2 * P
        return (cubic + alpha * L * mu * (8 * m - 40 * P) + L**2 * mu * (16 * m - 80 * P)) / (alpha * self.z)

    @property
    def rounded(self) -> tuple[float, float]:
        """20 alpha and 400."""
        return 20 * self.alpha, 400


@final
class Convex(Theorem):
    r"""Theorem 2, by Lemma 1:

    E[ l(1/T SUM_{t=0}^{T-1} gamma^t) - l_* ]
        <=  1/T ( 10 alpha ||theta^0 - theta_*||^2 + 100 m/P 1/alpha 1/m SUM_k ||grad L_k(theta_*)||^2 )

    D_t and C_t as for strongly convex losses, of which this is the case mu = 0.
    """

    method: ClassVar[Variant] = "FedDyn"
    case: ClassVar[Case] = "convex"
    source: ClassVar[str] = "Theorem 2, Lemma 1"

    @staticmethod
    def least_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha >= 25 L."""
        return 25 * L

    @staticmethod
    def recommended_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha = 30 L sqrt(m/P), which makes the bound O(sqrt(m/P) / T)."""
        return 30 * L * math.sqrt(m / P)

    @property
    def kappa(self) -> float:
        """kappa = 8 m/P 1/alpha (L + alpha) / (alpha^2 - 20 L^2)."""
        L, alpha = self.L, self.alpha
        return 8 * self.m / self.P / alpha * (L + alpha) / (alpha**2 - 20 * L**2)

    @property
    def kappa_0(self) -> float:
        """kappa_0 = 2/alpha (alpha^2 - 20 alpha L - 40 L^2) / (alpha^2 - 20 L^2)."""
        L, alpha = self.L, self.alpha
        return 2 / alpha * (alpha**2 - 20 * alpha * L - 40 * L**2) / (alpha**2 - 20 * L**2)

    @property
    def rounded(self) -> tuple[float, float]:
        """10 alpha and 100."""
        return 10 * self.alpha, 100


@final
class Nonconvex(Theorem):
    r"""Theorem 4, by Lemma 10, for any start:

    E[ 1/T SUM_{t=0}^{T-1} ||grad l(gamma^t)||^2 ]
        <=  1/T ( 3 alpha (l(theta^0) - l_*) + 30 L m/P 1/alpha 1/m SUM_k ||grad L_k(theta^0)||^2 )

    D_t = l(gamma^t) - l_*,  and in place of the paper's C_t = 1/m SUM_k ||theta_k^t - gamma^t||^2 the lag

    B_t = 1/m SUM_k ||lambda_k^t - grad L_k(gamma^t)||^2  <=  L^2 C_t  wherever lambda_k^t = grad L_k(theta_k^t) .

    The print has 30 L^3 m/P 1/alpha 1/m SUM_k ||theta_k^0 - theta^0||^2, which is true only where theta_k^0 is a
    stationary point of L_k, since lambda_k^0 = 0; there it follows from this one. With theta_k^0 = theta^0 it is false.
    """

    method: ClassVar[Variant] = "FedDyn"
    case: ClassVar[Case] = "nonconvex"
    source: ClassVar[str] = "Theorem 4, Lemma 10"

    @staticmethod
    def least_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha >= 20 L m/P."""
        return 20 * L * m / P

    @staticmethod
    def recommended_alpha(L: float, mu: float, m: int, P: int) -> float:
        """alpha = 30 L m/P, Theorem 1."""
        return 30 * L * m / P

    @property
    def z(self) -> float:
        """z = alpha^2 P^2 - 32 L^2 m^2 + 16 L^2 P m - 20 L^2 P^2."""
        L, m, P, alpha = self.L, self.m, self.P, self.alpha
        return alpha**2 * P**2 - 32 * L**2 * m**2 + 16 * L**2 * P * m - 20 * L**2 * P**2

    @property
    def kappa(self) -> float:
        """kappa = 4 L P (alpha + L)/alpha (2m - P)/z, the paper's over L^2: the weight of B_t, not of C_t."""
        L, m, P, alpha = self.L, self.m, self.P, self.alpha
        return 4 * L * P * (alpha + L) / alpha * (2 * m - P) / self.z

    @property
    def kappa_0(self) -> float:
        """kappa_0 = 1/(2 alpha) (alpha^2 P^2 - 4 alpha L P^2 - 32 L^2 m^2 + 16 L^2 P m - 24 L^2 P^2) / z.

        The print has - 16 L^2 P m; the sum of its lemmas has + 16, as z has. Both are valid, ours is larger.
        """
        L, P, alpha = self.L, self.P, self.alpha
        return (self.z - 4 * L * P**2 * (alpha + L)) / (2 * alpha * self.z)

    @property
    def rounded(self) -> tuple[float, float]:
        """3 alpha and 30 L."""
        return 3 * self.alpha, 30 * self.L
