r"""FedDC: local drift decoupling and correction (Gao et al., CVPR 2022): FedDyn with SCAFFOLD's correction in its tilt.

Device k has a drift d_k and a gradient estimate c_k, the server the mean drift D and an estimate c, all 0 at first.
Round t, for every active device k in P_t, with the path L of SCAFFOLD (the sum of the step sizes walked):

    x_k   = argmin_x  f_k(x) + <c/share_k - c_k, x> + alpha_k/2 ||x - (theta^{t-1} - d_k)||^2 ,  started at theta^{t-1}
    d_k^+ = d_k + (x_k - theta^{t-1})
    c_k^+ = c_k - c/share_k - (x_k - theta^{t-1}) / L

and the server, of m devices:

    D       <- D + 1/m SUM_{k in P_t} (x_k - theta^{t-1})                  = 1/m SUM_k d_k
    c       <- c + 1/m SUM_{k in P_t} share_k (c_k^+ - c_k)                = 1/m SUM_k share_k c_k
    theta^t  = 1/|P_t| SUM_{k in P_t} x_k + D

With lambda_k = -alpha_k d_k and h = -alpha D the penalty and the server are FedDyn's. Where everything stands still
D = 0 and c = 0, and the sum of the devices' conditions is that the gradient of the pooled loss is 0. Two models cross
the wire each way.

This is the form of the authors' code, shares and plain means included; only, that code divides by K times the undecayed
learning rate, and the sum of the step sizes is right where they decay, too. The paper's text was not at hand.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.checks import require_number
from feddyn.errors import InputError


@final
@dataclass(frozen=True)
class FedDC(Algorithm):
    """FedDC with penalty `alpha` > 0, FedDyn's; it needs a solver that reports its path."""

    alpha: Scalar
    as_sent = ("theta",)
    remembers_unsent = True
    remedy = "a larger alpha (as long as lr * alpha / share stays well below 2 on the smallest device)"
    needs_path: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number("FedDC", "alpha", self.alpha)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "drift": torch.zeros_like(theta), "c": torch.zeros_like(theta)}

    def device(self, theta: Vector) -> State:
        return {"drift": torch.zeros_like(theta), "c": torch.zeros_like(theta)}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"], "c": server["c"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        tilt = down["c"] / share - device["c"]
        return Problem(down["theta"], tilt, prox=self.alpha / share, center=down["theta"] - device["drift"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        if found.path is None:
            raise InputError(
                "FedDC: the solver does not report the path that it walked (the sum of its step sizes), from which "
                "FedDC computes its gradient estimates; return Solution(theta, path) or use SGD"
            )
        moved = found.theta - down["theta"]
        c = device["c"] - down["c"] / share - moved / found.path
        return {"drift": device["drift"] + moved, "c": c}, {"theta": found.theta, "c": share * (c - device["c"])}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        drift = server["drift"] + (total["theta"] - count * server["theta"]) / devices
        return {"theta": total["theta"] / count + drift, "drift": drift, "c": server["c"] + total["c"] / devices}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0

    def held(self, device: State, share: Scalar) -> State:
        return {"drift": device["drift"], "c": share * device["c"]}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """Newcomers have d_k = c_k = 0: D = 1/m SUM d_k <- D m/m', and c = 1/N SUM n_k c_k <- c N/N'."""
        drift = server["drift"] * (before.devices / after.devices)
        return {**server, "drift": drift, "c": server["c"] * (before.samples / after.samples)}
