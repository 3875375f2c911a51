r"""FedAvgM: FedAvg with momentum on the server (Hsu, Qi & Brown, 2019).

Devices do as in FedAvg. With their mean, weighted by data, the server takes a step of the heavy ball:

    v^t     = momentum v^{t-1} + SUM_{k in P_t} n_k theta_k / SUM_{k in P_t} n_k - theta^{t-1}
    theta^t = theta^{t-1} + lr v^t

momentum 0 and lr 1 are FedAvg. Where it rests the mean of the devices' moves is 0, so it rests where FedAvg does. The
equations are from memory of the paper.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Algorithm, Problem, Scalar, Solution, State, Vector, weighted_mean_upload
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class FedAvgM(Algorithm):
    """FedAvg with server `momentum` in [0, 1) and a server step `lr` > 0."""

    momentum: Scalar
    lr: Scalar = 1.0
    as_sent = ("theta",)
    carries = ("theta",)
    remedy = "a smaller momentum or step of the server (algorithm.lr)"

    def __post_init__(self) -> None:
        require_number("FedAvgM", "momentum", self.momentum, zero=True, below=1)
        require_number("FedAvgM", "lr", self.lr)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "v": torch.zeros_like(theta)}

    def device(self, theta: Vector) -> State:
        return {}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return {}, weighted_mean_upload(share, found.theta)

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        v = self.momentum * server["v"] + (total["theta"] / total["share"] - server["theta"])
        return {"theta": server["theta"] + self.lr * v, "v": v}

    def weight(self, share: Scalar) -> Scalar:
        return share
