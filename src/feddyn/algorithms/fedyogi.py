r"""FedYogi: FedAvg with Yogi on the server (Reddi et al., ICLR 2021, Algorithm 2).

Devices do as in FedAvg. Their mean move, weighted by data, is the server's gradient, up to its sign; all operations are
entry by entry:

    Delta^t = SUM_{k in P_t} n_k theta_k / SUM_{k in P_t} n_k - theta^{t-1}
    u^t     = beta1 u^{t-1} + (1 - beta1) Delta^t
    v^t     = v^{t-1} - (1 - beta2) (Delta^t)^2 sign(v^{t-1} - (Delta^t)^2)
    theta^t = theta^{t-1} + lr u^t / (sqrt(v^t) + tau)

u starts at 0 and v at tau^2, and there is no correction of their bias, as in the paper; `tau` says how small an update
is still scaled up. It differs from FedAdam in v alone, which falls by no more than (1 - beta2) (Delta^t)^2 a round, so
that large updates are forgotten slowly. It would rest where FedAvg does.

The equations are from memory of the paper, whose versions differ in whether Delta or u is squared; as in Yogi, it is
Delta here.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Algorithm, Problem, Scalar, Solution, State, Vector, weighted_mean_upload
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class FedYogi(Algorithm):
    """FedYogi with a server step `lr` > 0, decays `beta1`, `beta2` in [0, 1) and `tau` > 0."""

    lr: Scalar
    beta1: Scalar = 0.9
    beta2: Scalar = 0.99
    tau: Scalar = 1e-3
    as_sent = ("theta",)
    carries = ("theta",)
    remedy = "a smaller step of the server (algorithm.lr), or a larger tau"

    def __post_init__(self) -> None:
        require_number("FedYogi", "lr", self.lr)
        require_number("FedYogi", "tau", self.tau)
        require_number("FedYogi", "beta1", self.beta1, zero=True, below=1)
        require_number("FedYogi", "beta2", self.beta2, zero=True, below=1)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "u": torch.zeros_like(theta), "v": torch.zeros_like(theta) + self.tau**2}

    def device(self, theta: Vector) -> State:
        return {}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return {}, weighted_mean_upload(share, found.theta)

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        delta = total["theta"] / total["share"] - server["theta"]
        u = self.beta1 * server["u"] + (1 - self.beta1) * delta
        square = delta.square()
        v = server["v"] - (1 - self.beta2) * square * (server["v"] - square).sign()
        return {"theta": server["theta"] + self.lr * u / (v.sqrt() + self.tau), "u": u, "v": v}

    def weight(self, share: Scalar) -> Scalar:
        return share
