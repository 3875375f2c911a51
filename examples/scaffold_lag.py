r"""How old SCAFFOLD's control variates get, beside FedDyn's device models, in expectation over the active devices.

Device i's control variate c_i is the mean of its gradients at the K points a_{i,k} of its last active round. Their lag,

    Xi_t = 1/(K m) SUM_{i,k} ||a_{i,k}^t - x^t||^2 ,

is what SCAFFOLD's nonconvex rate rests on ('lag in the control variates', Lemma 17 of Karimireddy et al., ICML 2020),
and the FedDyn paper says that it could not verify that lemma on an example with quadratics. In the form in which we
know it, without noise, for steps of total length K lr <= q^a / (24 L), q = P/m, 1/2 <= a <= 1, it says

    E[Xi_t]  <=  (1 - 17/36 q) Xi_{t-1} + q^{2a-1} ( 1/(48 L^2) ||grad l(x^{t-1})||^2 + 97/48 E_t ) ,
    E_t = 1/(K m) SUM_{i,k} ||y_{i,k}^t - x^{t-1}||^2 ,  the drift of all devices were they active.

FedDyn's counterpart is C_t = 1/m SUM_k ||theta_k^t - gamma^t||^2 with Lemma 12 of its paper,

    E[C_t]  <=  2(m-P)/(2m-P) C_{t-1} + 2P/(2m-P) epsilon_t + 2 m/P E||gamma^t - gamma^{t-1}||^2 .

On quadratics both sides are quadratic forms of the state, so the largest left / right of *all* states is a generalised
eigenvalue: no sampling, no choice of an example. Run it:  python examples/scaffold_lag.py
"""

import torch

from feddyn import FedDyn, Problem, Scaffold, Solution
from feddyn.theory import exact
from feddyn.theory.problems import Losses, Quadratics
from feddyn.theory.verification.laboratory import Laboratory, State, active_sets, draws
from feddyn.theory.verification.worst import forms, suprema, supremum

L, D = 1.0, 2
FACTORS = (1, 3, 6, 12, 24, 48)


class Steps(Laboratory):
    """SCAFFOLD whose devices take K gradient steps, and remember where."""

    def __init__(self, losses: Losses, length: float, K: int):
        super().__init__(Scaffold(), losses)
        self.lr, self.K = length / K, K
        self.points: torch.Tensor  # y_{i,k} of the last offer, (..., K, m, d)

    def _solve(self, problem: Problem) -> Solution:
        y, points = problem.start + torch.zeros_like(self.losses.share), []
        for _ in range(self.K):
            points.append(y)
            y = y - self.lr * problem.penalised_slope(self.losses.gradients(y), y)
        self.points = torch.stack(points, -3)
        return Solution(y, self.K * self.lr)

    def state(self, x: torch.Tensor, memory: torch.Tensor) -> State:
        """The server at x (paths, d), and c_i the mean gradient at the memory (paths, K, m, d)."""
        c = self.losses.gradients(memory).mean(-3)
        return State({"theta": x.unsqueeze(-2), "c": c.mean(-2, keepdim=True)}, {"c": c}, memory[:, -1], x)


def lag(points: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """1/(K m) SUM ||points - x||^2."""
    return (points - x[..., None, None, :]).square().sum(-1).mean((-1, -2))


def lemma_17(m: int, P: int, a: float, K: int, factor: float, seed: int) -> float:
    """The largest left / right of all states, with steps `factor` times as long as the lemma allows."""
    q = P / m
    losses = Quadratics(m, D, L=L, mu=-0.05, spread=0, seed=seed)
    scaffold, sets = Steps(losses, factor * q**a / (24 * L), K), active_sets(m, P)

    def sides(v: torch.Tensor) -> list[torch.Tensor]:
        x, memory = v[:, :D], v[:, D:].reshape(len(v), K, m, D)
        state = scaffold.state(x, memory)
        after = scaffold.complete(state, scaffold.offer(state), sets).server["theta"].squeeze(-2)
        left = lag(torch.where(sets[:, :, None, :, None], scaffold.points, memory), after).mean(0)
        slope = losses.pooled_gradient(x).square().sum(-1) / (48 * L**2)
        drift = 97 / 48 * lag(scaffold.points, x)
        return [left, (1 - 17 / 36 * q) * lag(memory, x) + q ** (2 * a - 1) * (slope + drift)]

    left, right = forms(sides, D + K * m * D)
    return supremum(left, right)


def lemma_12(m: int, P: int, seed: int) -> float:
    """FedDyn's, at the least alpha of its theorem."""
    losses = Quadratics(m, D, L=L, mu=-0.05, spread=0, seed=seed)
    theorem = exact.Nonconvex(L, m, P, exact.Nonconvex.least_alpha(L, 0.0, m, P))
    return suprema(Laboratory(FedDyn(theorem.alpha), losses), theorem)["C_t (Lemma 12)"]


def histories(m: int, P: int, rounds: list[int], paths: int = 200) -> list[tuple[int, float, float, float, float]]:
    """Round, mean Xi_t and C_t of random histories, and each over its squared gradient norm at the server (gamma).

    Both go by about the same length a round: K lr = 1/alpha = P/(30 m L), FedDyn's recommended.
    """
    losses = Quadratics(m, D, L=L, mu=-0.05, spread=1, seed=0)
    length = P / (30 * m * L)
    scaffold, feddyn = Steps(losses, length, K=5), Laboratory(FedDyn(1 / length), losses)
    start, random, found = losses.theta_star + 1, torch.Generator().manual_seed(0), []
    memory = start.expand(paths, 5, m, D)
    ours, theirs = feddyn.start(start, paths, models=losses.b), scaffold.state(start.expand(paths, D), memory)
    for t in range(1, rounds[-1] + 1):
        active = draws(paths, m, P, random)
        theirs = scaffold.complete(theirs, scaffold.offer(theirs), active)
        memory = torch.where(active[:, None, :, None], scaffold.points, memory)
        ours = feddyn.complete(ours, feddyn.offer(ours), active)
        if t in rounds:
            x = theirs.server["theta"].squeeze(-2)
            xi, c = lag(memory, x).mean(), (ours.models - ours.gamma.unsqueeze(-2)).square().sum(-1).mean()
            slopes = [losses.pooled_gradient(point).square().sum(-1).mean() for point in (x, ours.gamma)]
            found.append((t, float(xi), float(c), float(xi / slopes[0]), float(c / slopes[1])))
    return found


def main() -> None:
    torch.set_num_threads(1)
    print("largest left / right over all states, of six draws of the curvatures")
    print("Lemma 17 of SCAFFOLD with steps 1, 3, ... times as long as it allows; Lemma 12 of FedDyn at its least alpha")
    print(f"{'m':>3} {'P':>3} {'a':>5} {'K':>3}" + "".join(f"{factor:>8} x" for factor in FACTORS) + "  Lemma 12")
    for m, P in ((2, 1), (4, 1), (6, 2), (6, 1), (10, 1)):
        ours = max(lemma_12(m, P, seed) for seed in range(6))
        for a in (0.5, 2 / 3, 1.0):
            K = 3 if m < 10 else 1
            worst = [max(lemma_17(m, P, a, K, factor, seed) for seed in range(6)) for factor in FACTORS]
            print(f"{m:>3} {P:>3} {a:>5.2f} {K:>3}" + "".join(f"{value:>10.3f}" for value in (*worst, ours)))
    print("\nrandom histories, m = 10, P = 1, equal steps: lag of SCAFFOLD, C_t of FedDyn, and over ||grad l||^2")
    for t, xi, c, relative_xi, relative_c in histories(10, 1, [1, 3, 10, 30, 100, 300, 1000, 3000]):
        print(f"t = {t:>4}   Xi {xi:.2e}   C {c:.2e}   Xi/G {relative_xi:.2e}   C/G {relative_c:.2e}")


if __name__ == "__main__":
    main()
