r"""SCAFFOLD: stochastic controlled averaging (Karimireddy et al., ICML 2020), option II, global step 1.

Round t, for every active device k in P_t, K steps of length lr from the server's model along corrected gradients:

    theta_k <- theta_k - lr (grad f_k(theta_k) + c/share_k - c_k)
    c_k^+    = c_k - c + (theta^{t-1} - theta_k) / (K lr)
    theta^t  = 1/|P_t| SUM_{k in P_t} theta_k
    c^t      = c^{t-1} + 1/m SUM_{k in P_t} share_k (c_k^+ - c_k)

The shares, and the plain mean of the active models, are the FedDyn authors' form for unbalanced devices; with equal
devices (share_k = 1) this is the paper's. A constant correction of the gradient is a tilt of the objective, so this too
is one problem per device. K lr is the length of the path walked, the sum of the step sizes, which is also right where
the step size changes on the way; the FedDyn authors' code divides by K times the undecayed lr. Both c and the model
cross the wire: two models a round.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.errors import InputError


@final
@dataclass(frozen=True)
class Scaffold(Algorithm):
    """SCAFFOLD; it has no parameters of its own and needs a solver that reports its path."""

    needs_path: ClassVar[bool] = True
    as_sent = ()
    carries = ("theta",)
    remembers_unsent = True

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "c": torch.zeros_like(theta)}

    def device(self, theta: Vector) -> State:
        return {"c": torch.zeros_like(theta)}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"], "c": server["c"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"], tilt=down["c"] / share - device["c"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        if found.path is None:
            raise InputError(
                "Scaffold: the solver does not report the path that it walked (the sum of its step sizes), from which "
                "SCAFFOLD computes its control variates; return Solution(theta, path) or use SGD"
            )
        control = device["c"] - down["c"] + (down["theta"] - found.theta) / found.path
        return {"c": control}, {"theta": found.theta, "c": share * (control - device["c"])}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return {"theta": total["theta"] / count, "c": server["c"] + total["c"] / devices}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0

    def reference(self, down: State, device: State, path: Scalar | None) -> Vector | None:
        """theta - path c, for which c_k^+ = c_k: what is sent is  -path (c_k^+ - c_k) , which vanishes as they settle.
        So compressed uploads are SCALLION's (Huang, Li & Li, ICLR 2024), delta_k = Q((theta - theta_k)/path - c)."""
        return None if path is None else down["theta"] - path * down["c"]

    def held(self, device: State, share: Scalar) -> State:
        return {"c": share * device["c"]}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """c = 1/m SUM share_k c_k = 1/N SUM n_k c_k, and newcomers have c_k = 0:  c <- c N/N'."""
        return {**server, "c": server["c"] * (before.samples / after.samples)}
