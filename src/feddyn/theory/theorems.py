r"""What a convergence theorem of the paper says, as functions of (L, mu, m, P, alpha, T).

All six theorems telescope one inequality, their progress lemma: for a potential Phi_t = a D_t + kappa C_t,

    r E[Phi_t]  <=  Phi_{t-1} - kappa_0 G_{t-1} ,      so with R = SUM_{t=0}^{T-1} r^t

    1/R SUM_{t=0}^{T-1} r^t E[G_t]  <=  Phi_0 / (kappa_0 R) ,

where G_t is what converges: l(gamma^t) - l_* of convex losses, ||grad l(gamma^t)||^2 of others. The right-hand side is
`sharp` here; the theorems (of FedDynOneGD: its proofs) have it with rounded constants, which is `printed`. By Jensen's
inequality the convex theorems have l of the averaged gamma on the left, which is less. `feddyn.theory.exact` and
`feddyn.theory.one_step` hold the six.

L, mu and the gradients are those of share_k L_k: with unequal devices FedDyn is the paper's algorithm on these.
docs/theory.md says where the print differs from what is right.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError

Case: TypeAlias = Literal["strongly convex", "convex", "nonconvex"]
Variant: TypeAlias = Literal["FedDyn", "FedDynOneGD"]


class Start(NamedTuple):
    """What the bounds know of the start, where lambda_k^0 = 0 and h^0 = 0, so gamma^0 = theta^0."""

    distance: float
    """||theta^0 - theta_*||^2"""
    dissimilarity: float
    """1/m SUM_k ||grad L_k(theta_*)||^2: how different the devices are, the convex C_0 and A_0"""
    gap: float
    """l(theta^0) - l_*"""
    lag: float
    """1/m SUM_k ||grad L_k(theta^0)||^2: the nonconvex B_0, how wrong lambda_k^0 = 0 is as a gradient at theta^0"""


@dataclass(frozen=True)
class Theorem(ABC):
    """A theorem for L-smooth, mu strongly convex losses of m devices, P of them active a round, and one alpha.

    `alpha` must be at least `least_alpha(L, mu, m, P)`; `at_best` takes the one that the paper recommends.
    """

    L: float
    m: int
    P: int
    alpha: float
    mu: float = 0.0

    method: ClassVar[Variant]
    case: ClassVar[Case]
    source: ClassVar[str]
    """Where the paper has it."""

    def __post_init__(self) -> None:
        self._check(self.L, self.mu, self.m, self.P)
        require_number(str(self), "alpha", self.alpha)
        least = self.least_alpha(self.L, self.mu, self.m, self.P)
        if self.alpha < least * (1 - 1e-12):
            raise InputError(f"{self}: holds for alpha of at least {least:g}, not {self.alpha:g}")

    @classmethod
    def _check(cls, L: float, mu: float, m: int, P: int) -> None:
        where = f"{cls.method}, {cls.case}"
        require_number(where, "L", L)
        require_number(where, "mu", mu, zero=cls.case != "strongly convex")
        if mu > L:
            raise InputError(f"{where}: mu = {mu:g} cannot be above L = {L:g}")
        require_whole(where, "m", m, 1)
        require_whole(where, "P", P, 1)
        if m < P:
            raise InputError(f"{where}: P = {P} devices cannot be active of m = {m}")

    def __str__(self) -> str:
        return f"{self.method}, {self.case}"

    @classmethod
    def at_best(cls, L: float, mu: float, m: int, P: int) -> "Theorem":
        """The theorem at the alpha that the paper recommends."""
        cls._check(L, mu, m, P)
        return cls(L, m, P, cls.recommended_alpha(L, mu, m, P), mu)

    @staticmethod
    @abstractmethod
    def least_alpha(L: float, mu: float, m: int, P: int) -> float:
        """The condition on alpha."""

    @staticmethod
    @abstractmethod
    def recommended_alpha(L: float, mu: float, m: int, P: int) -> float:
        """The alpha with which the paper states the rate."""

    @property
    def convexity(self) -> float:
        """What the theorem uses of mu: all of it, or nothing."""
        return self.mu if self.case == "strongly convex" else 0.0

    @property
    def a(self) -> float:
        """The weight of D_t in the potential."""
        return 1.0

    @property
    def r(self) -> float:
        """The factor by which the potential falls a round."""
        return 1.0

    @property
    @abstractmethod
    def kappa(self) -> float:
        """The weight of C_t (or A_t, B_t) in the potential."""

    @property
    @abstractmethod
    def kappa_0(self) -> float:
        """How much of G_{t-1} a round removes from the potential."""

    @property
    @abstractmethod
    def rounded(self) -> tuple[float, float]:
        """The theorem's constants (near, far): Phi_0 / kappa_0 rounded up to  near D_0 + far m/P 1/alpha C_0 ."""

    def inverse_R(self, T: int) -> float:  # noqa: N802
        """1/R = 1 / SUM_{t=0}^{T-1} r^t = (r - 1) / (r^T - 1)."""
        require_whole(str(self), "T", T, 1)
        if self.r == 1:
            return 1 / T
        length = T * math.log(self.r)
        return (self.r - 1) * math.exp(-length) / -math.expm1(-length)  # r^T itself may overflow

    def potential(self, start: Start) -> float:
        """Phi_0 = a D_0 + kappa C_0."""
        D, C = self._start(start)
        return self.a * D + self.kappa * C

    def sharp(self, T: int, start: Start) -> float:
        """Phi_0 / (kappa_0 R), the right-hand side as the proof has it before its constants are rounded up."""
        return self.potential(start) / self.kappa_0 * self.inverse_R(T)

    def printed(self, T: int, start: Start) -> float:
        """The right-hand side with the theorem's constants, and 1/r^{T-1} in place of the smaller 1/R."""
        require_whole(str(self), "T", T, 1)
        near, far = self.rounded
        D, C = self._start(start)
        decay = 1 / T if self.r == 1 else math.exp((1 - T) * math.log(self.r))
        return (near * D + far * self.m / self.P / self.alpha * C) * decay

    def _start(self, start: Start) -> tuple[float, float]:
        """D_0 and C_0 (A_0, B_0)."""
        return (start.gap, start.lag) if self.case == "nonconvex" else (start.distance, start.dissimilarity)
