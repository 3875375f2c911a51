r"""FedACG: accelerated client gradient (Kim, Kim & Han, CVPR 2024). Devices keep nothing.

The server has a model theta and a momentum v, 0 at first, and sends devices where the momentum will take it:

    s       = theta^{t-1} + momentum v^{t-1}
    x_k     = argmin_x  f_k(x) + beta/2 ||x - s||^2 ,   started at s
    v^t     = momentum v^{t-1} + 1/|P_t| SUM_{k in P_t} (x_k - s)
    theta^t = 1/|P_t| SUM_{k in P_t} x_k  =  theta^{t-1} + v^t

Where it comes to rest, v = 0 and the devices' moves from s cancel: the resting points are those of FedProx with
mu = beta (plain means), not the optimum of the pooled loss.

As in the authors' code (momentum 0.85; it adds 0.001 ||x - s||^2, which is beta = 0.002) the means are not weighted by
data. The beta/2 of the paper is from memory.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Algorithm, Problem, Scalar, Solution, State, Vector
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class FedACG(Algorithm):
    """FedACG with server `momentum` in [0, 1) and penalty `beta` >= 0."""

    momentum: Scalar
    beta: Scalar = 0.0
    as_sent = ()
    remedy = "a smaller momentum, or a beta with which lr * beta stays well below 2"

    def __post_init__(self) -> None:
        require_number("FedACG", "momentum", self.momentum, zero=True, below=1)
        require_number("FedACG", "beta", self.beta, zero=True)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "v": torch.zeros_like(theta)}

    def device(self, theta: Vector) -> State:
        return {}

    def broadcast(self, server: State) -> State:
        return {"ahead": server["theta"] + self.momentum * server["v"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["ahead"], prox=self.beta, center=down["ahead"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return {}, {"theta": found.theta}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        theta = total["theta"] / count
        return {"theta": theta, "v": theta - server["theta"]}

    def carry(self, server: State, unsent: State) -> State:
        """theta^t = s + 1/|P_t| SUM (x_k - s'), where devices were sent s' for s, and v^t = theta^t - theta^{t-1}."""
        return {name: vector + unsent["ahead"] for name, vector in server.items()}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0
