r"""The lemmas of the proofs, as inequalities that one enumerated round satisfies, given everything before it.

The paper takes expectations over the past too; every step of its proofs holds given the past, so these are stronger.
Names are the paper's numbers. gamma, C, A, B, epsilon are those of `feddyn.theory.verification.rounds`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.rounds import ROUNDING, Round, expected, mean_square, square


class Inequality(NamedTuple):
    """left <= right, one number of each for every history; `slack` is what rounding may add to the left."""

    name: str
    left: torch.Tensor
    right: torch.Tensor
    slack: torch.Tensor

    @property
    def ratio(self) -> float:
        """The largest left / right of the histories in which they are not lost in rounding."""
        above = torch.maximum(self.left.abs(), self.right.abs()) > 1e3 * self.slack
        ratios = torch.where(self.right > 0, self.left / self.right, torch.inf)
        return float(torch.where(above, ratios, 0.0).max())

    @property
    def holds(self) -> bool:
        """Whether left <= right in all histories, up to rounding."""
        return bool((self.left - self.right <= self.slack).all())


def inequalities(round: Round, theorem: Theorem) -> list[Inequality]:
    """All that the proof of a theorem claims of a round."""
    found = [step_lemma(round), descent(round, theorem), progress(round, theorem)]
    lemmas = _EXACT if theorem.method == "FedDyn" else _ONE_STEP
    return found + [lemma(round) for lemma in lemmas[theorem.case]]


def progress(round: Round, theorem: Theorem) -> Inequality:
    """Lemmas 1, 8 and 10, and their like for FedDynOneGD:  kappa_0 G_{t-1}  <=  Phi_{t-1} - r E[Phi_t] ."""
    a, kappa = theorem.a, theorem.kappa
    if theorem.case == "nonconvex":
        C0, C1, G = round.lag(round.before), expected(round.lag(round.after)), round.steepness
    else:
        C0, C1, G = round.error(round.before), expected(round.error(round.after)), round.gap
    D0, D1, rounding = _main_terms(round, theorem)
    before, after = a * D0 + kappa * C0, a * D1 + kappa * C1
    slack = a * rounding + kappa * (ROUNDING * C0 + round.alpha**2 * round.floor)
    return Inequality("progress", theorem.kappa_0 * G, before - theorem.r * after, slack)


def descent(round: Round, theorem: Theorem) -> Inequality:
    """What each proof starts from, before its lemmas; with mu = 0 for convex losses, M = E||gamma^t - gamma^{t-1}||^2:

    FedDyn, convex:         (1 + mu/alpha) E[D_t] + 2/alpha G  <=  D_{t-1} + L/alpha epsilon_t + M
    FedDyn, nonconvex:      E[D_t] + 1/(2 alpha) G             <=  D_{t-1} + L^2/(2 alpha) epsilon_t + L/2 M
    FedDynOneGD, convex:    (1 + mu/(3 alpha)) E[D_t] + 2/alpha G
                                <=  D_{t-1} + (L + mu)/alpha^3 A_{t-1} + (1 + mu/alpha) epsilon_t
    FedDynOneGD, nonconvex: E[D_t] + (1/(2 alpha) - L^2/alpha^3) G
                                <=  D_{t-1} + L^2/alpha^3 B_{t-1} + L/2 epsilon_t
    """
    L, alpha, one_step = round.L, round.alpha, theorem.method == "FedDynOneGD"
    mu = theorem.convexity
    D0, D1, rounding = _main_terms(round, theorem)
    if theorem.case == "nonconvex":
        gained = (1 / (2 * alpha) - (L**2 / alpha**3 if one_step else 0)) * round.steepness
        rest = L**2 / (2 * alpha) * round.epsilon + L / 2 * round.moved
        if one_step:
            rest = L**2 / alpha**3 * round.lag(round.before) + L / 2 * round.epsilon
    else:
        gained = 2 / alpha * round.gap
        rest = L / alpha * round.epsilon + round.moved
        if one_step:
            rest = (L + mu) / alpha**3 * round.error(round.before) + (1 + mu / alpha) * round.epsilon
    return Inequality("descent", gained, D0 - theorem.r * D1 + rest, 10 * rounding)


def _main_terms(round: Round, theorem: Theorem) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """D_{t-1}, E[D_t], and the rounding of their difference."""
    if theorem.case == "nonconvex":
        D0, D1 = round.gap, expected(round.losses.gap(round.after.gamma))
        return D0, D1, ROUNDING * round.losses.size(round.gamma) + round.L * round.floor
    D0, D1 = round.distance(round.before), expected(round.distance(round.after))
    return D0, D1, ROUNDING * D0 + round.floor


def _claim(round: Round, name: str, left: torch.Tensor, right: torch.Tensor, *, gradients: bool = False) -> Inequality:
    """A claim whose sides are sums of squares, of models or of gradients."""
    floor = round.floor * (round.alpha**2 if gradients else 1.0)
    return Inequality(name, left, right, ROUNDING * torch.maximum(left, right) + floor)


def step_lemma(round: Round) -> Inequality:
    """Lemma 3:  E ||gamma^t - gamma^{t-1}||^2  <=  epsilon_t ."""
    return _claim(round, "step (Lemma 3)", round.moved, round.epsilon)


def state_lemma(round: Round) -> Inequality:
    """Lemmas 7 and 17:  ||h^{t-1}||^2  <=  C_{t-1} , and A_{t-1} ."""
    h = round.before.server["h"].squeeze(-2)
    return _claim(round, "h (Lemmas 7, 17)", square(h), round.error(round.before), gradients=True)


def mean_lemma(round: Round) -> Inequality:
    """Lemma 9:  E ||gamma^t - theta_*||^2  <=  1/m SUM_k ||theta~_k^t - theta_*||^2 ."""
    away = mean_square(round.virtual - round.losses.theta_star)
    return _claim(round, "mean (Lemma 9)", expected(round.distance(round.after)), away)


def convex_epsilon(round: Round) -> Inequality:
    """Lemma 4:  (1 - 4 L^2/alpha^2) epsilon_t  <=  8/alpha^2 C_{t-1} + 8 L/alpha^2 (l(gamma^{t-1}) - l_*) ."""
    L, alpha = round.L, round.alpha
    right = 8 / alpha**2 * round.error(round.before) + 8 * L / alpha**2 * round.gap
    return _claim(round, "epsilon_t (Lemma 4)", (1 - 4 * L**2 / alpha**2) * round.epsilon, right)


def convex_error(round: Round) -> Inequality:
    """Lemma 5:  C_t  <=  (1 - P/m) C_{t-1} + 2 L^2 P/m epsilon_t + 4 L P/m (l(gamma^{t-1}) - l_*) ."""
    L, part = round.L, round.P / round.m
    kept = (1 - part) * round.error(round.before)
    right = kept + 2 * L**2 * part * round.epsilon + 4 * L * part * round.gap
    return _claim(round, "C_t (Lemma 5)", expected(round.error(round.after)), right, gradients=True)


def nonconvex_epsilon(round: Round) -> Inequality:
    """Lemma 11:  (1 - 4 L^2/alpha^2) epsilon_t  <=  8/alpha^2 B_{t-1} + 4/alpha^2 ||grad l(gamma^{t-1})||^2 ."""
    L, alpha = round.L, round.alpha
    right = 8 / alpha**2 * round.lag(round.before) + 4 / alpha**2 * round.steepness
    return _claim(round, "epsilon_t (Lemma 11)", (1 - 4 * L**2 / alpha**2) * round.epsilon, right)


def nonconvex_lag(round: Round) -> Inequality:
    """Lemma 12 for B:  B_t  <=  2(m-P)/(2m-P) B_{t-1} + 2P/(2m-P) L^2 epsilon_t
    + 2 m/P L^2 E||gamma^t - gamma^{t-1}||^2 ."""
    m, P = round.m, round.P
    kept = 2 * (m - P) / (2 * m - P) * round.lag(round.before)
    new = round.L**2 * (2 * P / (2 * m - P) * round.epsilon + 2 * m / P * round.moved)
    return _claim(round, "B_t (Lemma 12 for B)", expected(round.lag(round.after)), kept + new, gradients=True)


def nonconvex_spread(round: Round) -> Inequality:
    """Lemma 12:  C_t  <=  2(m-P)/(2m-P) C_{t-1} + 2P/(2m-P) epsilon_t + 2 m/P E||gamma^t - gamma^{t-1}||^2 ."""
    m, P = round.m, round.P
    kept = 2 * (m - P) / (2 * m - P) * round.spread(round.before)
    new = 2 * P / (2 * m - P) * round.epsilon + 2 * m / P * round.moved
    return _claim(round, "C_t (Lemma 12)", expected(round.spread(round.after)), kept + new)


def one_step_convex_epsilon(round: Round) -> Inequality:
    """Lemma 14:  epsilon_t  <=  (8/alpha^2 + 4 L^2/alpha^4) A_{t-1} + 8 L/alpha^2 (l(gamma^{t-1}) - l_*) ."""
    L, alpha = round.L, round.alpha
    right = (8 / alpha**2 + 4 * L**2 / alpha**4) * round.error(round.before) + 8 * L / alpha**2 * round.gap
    return _claim(round, "epsilon_t (Lemma 14)", round.epsilon, right)


def one_step_error(round: Round) -> Inequality:
    """Lemma 15:  A_t  <=  (1 - P/m + P/m 2 L^2/alpha^2) A_{t-1} + 4 L P/m (l(gamma^{t-1}) - l_*) ."""
    L, part = round.L, round.P / round.m
    kept = (1 - part + part * 2 * L**2 / round.alpha**2) * round.error(round.before)
    return _claim(
        round, "A_t (Lemma 15)", expected(round.error(round.after)), kept + 4 * L * part * round.gap, gradients=True
    )


def one_step_mean(round: Round) -> Inequality:
    """Lemma 16:  1/3 E||gamma^t - theta_*||^2  <=  ||theta^{t-1} - theta_*||^2 + E||gamma^t - gamma^{t-1}||^2
    + 1/alpha^2 A_{t-1} ."""
    theta = round.before.server["theta"].squeeze(-2)
    right = square(theta - round.losses.theta_star) + round.moved + round.error(round.before) / round.alpha**2
    return _claim(round, "mean (Lemma 16)", expected(round.distance(round.after)) / 3, right)


def one_step_server(round: Round) -> Inequality:
    """Lemma 18:  ||theta^{t-1} - gamma^{t-1}||^2  <=  1/alpha^2 A_{t-1} ."""
    theta = round.before.server["theta"].squeeze(-2)
    return _claim(round, "server (Lemma 18)", square(theta - round.gamma), round.error(round.before) / round.alpha**2)


def one_step_nonconvex_epsilon(round: Round) -> Inequality:
    """Lemma 19, sharper:  epsilon_t  <=  (3/alpha^2 + 6 L^2/alpha^4) (B_{t-1} + ||grad l(gamma^{t-1})||^2) .

    The print has 4 and 8 in place of 3 and 6. Its proof has 8/alpha^2 B_{t-1} in the last line but one, and 4 in the
    last; the statement is true nevertheless. With a_k = lambda_k^{t-1} - grad L_k(gamma^{t-1}),

        alpha (theta~_k^t - gamma^{t-1})
            = (a_k - 1/m SUM_j a_j) + (grad L_k(gamma^{t-1}) - grad L_k(theta^{t-1})) - grad l(gamma^{t-1}) ,

    three terms in place of four, and the mean square of the first is at most B_{t-1}; Lemma 21 bounds the second.
    """
    L, alpha = round.L, round.alpha
    right = (3 / alpha**2 + 6 * L**2 / alpha**4) * (round.lag(round.before) + round.steepness)
    return _claim(round, "epsilon_t (Lemma 19)", round.epsilon, right)


def one_step_lag(round: Round) -> Inequality:
    """Lemma 20:  B_t  <=  2m/(2m-P) [1 + P/m (2 L^2/alpha^2 - 1)] B_{t-1}
    + L^2/alpha^2 4P/(2m-P) ||grad l(gamma^{t-1})||^2 + 2 m/P L^2 epsilon_t ."""
    L, m, P, alpha = round.L, round.m, round.P, round.alpha
    kept = 2 * m / (2 * m - P) * (1 + P / m * (2 * L**2 / alpha**2 - 1)) * round.lag(round.before)
    new = L**2 / alpha**2 * 4 * P / (2 * m - P) * round.steepness + 2 * m / P * L**2 * round.epsilon
    return _claim(round, "B_t (Lemma 20)", expected(round.lag(round.after)), kept + new, gradients=True)


def one_step_gradients(round: Round) -> Inequality:
    """Lemma 21:  1/m SUM_k ||grad L_k(gamma) - grad L_k(theta)||^2  <=  2 L^2/alpha^2 (B + ||grad l(gamma)||^2) ."""
    left = mean_square(round.at_gamma - round.losses.slopes(round.before.server["theta"]))
    right = 2 * round.L**2 / round.alpha**2 * (round.lag(round.before) + round.steepness)
    return _claim(round, "gradients (Lemma 21)", left, right, gradients=True)


_Lemmas = dict[str, tuple[Callable[[Round], Inequality], ...]]
_EXACT: _Lemmas = {
    "strongly convex": (state_lemma, convex_epsilon, convex_error, mean_lemma),
    "convex": (state_lemma, convex_epsilon, convex_error),
    "nonconvex": (nonconvex_epsilon, nonconvex_lag, nonconvex_spread),
}
_ONE_STEP: _Lemmas = {
    "strongly convex": (state_lemma, one_step_convex_epsilon, one_step_error, one_step_mean, one_step_server),
    "convex": (state_lemma, one_step_convex_epsilon, one_step_error, one_step_server),
    "nonconvex": (one_step_nonconvex_epsilon, one_step_lag, one_step_gradients),
}
