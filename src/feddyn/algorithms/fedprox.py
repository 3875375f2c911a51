r"""FedProx (Li et al., MLSys 2020).

Round t, for every active device k in P_t:

    theta_k^t ~ argmin_theta  f_k(theta) + mu/2 ||theta - theta^{t-1}||^2
    theta^t   = SUM_{k in P_t} n_k theta_k^t / SUM_{k in P_t} n_k

The penalty keeps devices near the server but does not move their optima onto the global one; mu = 0 is FedAvg.
As in the FedDyn authors' comparison, mu is the same for all devices, whatever their size.
"""

from dataclasses import dataclass
from typing import final

from feddyn.algorithms.base import (
    Algorithm,
    Problem,
    Scalar,
    Solution,
    State,
    Vector,
    weighted_mean_upload,
)
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class FedProx(Algorithm):
    """FedProx with penalty `mu` >= 0."""

    mu: Scalar
    as_sent = ()
    carries = ("theta",)
    remedy = "a mu with which lr * mu stays well below 2"

    def __post_init__(self) -> None:
        require_number("FedProx", "mu", self.mu, zero=True)

    def server(self, theta: Vector) -> State:
        return {"theta": theta}

    def device(self, theta: Vector) -> State:
        return {}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"], prox=self.mu, center=down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return {}, weighted_mean_upload(share, found.theta)

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return {"theta": total["theta"] / total["share"]}

    def weight(self, share: Scalar) -> Scalar:
        return share
