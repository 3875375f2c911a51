r"""FedAvg: federated averaging (McMahan et al., AISTATS 2017).

Round t, for every active device k in P_t, a few passes of SGD on its own loss from the server's model:

    theta_k^t ~ argmin_theta  f_k(theta) ,  started at theta^{t-1}
    theta^t   = SUM_{k in P_t} n_k theta_k^t / SUM_{k in P_t} n_k

The device solves its own problem, so where devices differ and solve it well, theta^t does not settle at the optimum of
the pooled loss. With `OneStep(lr)` this is distributed SGD, and with one device that holds all data it is centralised
training.
"""

from dataclasses import dataclass
from typing import final

from feddyn.algorithms.base import Algorithm, Problem, Scalar, Solution, State, Vector, weighted_mean_upload


@final
@dataclass(frozen=True)
class FedAvg(Algorithm):
    """Federated averaging; it has no parameters of its own."""

    as_sent = ()
    carries = ("theta",)

    def server(self, theta: Vector) -> State:
        return {"theta": theta}

    def device(self, theta: Vector) -> State:
        return {}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return {}, weighted_mean_upload(share, found.theta)

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return {"theta": total["theta"] / total["share"]}

    def weight(self, share: Scalar) -> Scalar:
        return share
