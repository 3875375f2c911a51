r"""AdaBest: adaptive bias estimation (Varno et al., ECCV 2022, Algorithm 1).

Device k has an estimate h_k, 0 at first, and the round t_k of its last activity; the server the last mean. Round
t = 1, 2, ..., for every active device k in P_t:

    x_k = argmin_x  f_k(x) - <h_k, x> ,   started at theta^{t-1}
    h_k <- h_k / (t - t_k) + mu_k (theta^{t-1} - x_k) ,   t_k <- t

and the server, with mean^0 = theta^0:

    mean^t  = 1/|P_t| SUM_{k in P_t} x_k
    theta^t = mean^t - beta (mean^{t-1} - mean^t)

Nothing accumulates on the server, and a device's estimate fades while it is away, so neither can grow without end, as
FedDyn's h and lambda_k may where few devices are active. The price: at full participation every theta with
h_k = grad f_k(theta) for all k is a resting point, for nothing ties the h_k to a sum of zero. It is not exact.

Unequal devices as in the authors' code, which divides mu by n_k and multiplies it by the mean of n: mu_k = mu/share_k.
That code also has a factor for its number of epochs, and a server optimiser, which is a step of 1 here. Equations from
the code and from memory of the paper. Rounds in which no upload was counted are not rounds here.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class AdaBest(Algorithm):
    """AdaBest with `mu` > 0 for the devices' estimates and `beta` in [0, 1) for the server's; versions of the authors'
    code have 0.02 and 0.98, or 0.1 and 0.8."""

    mu: Scalar
    beta: Scalar
    as_sent = ()
    remembers_unsent = False
    remedy = "a smaller mu or beta"

    def __post_init__(self) -> None:
        require_number("AdaBest", "mu", self.mu)
        require_number("AdaBest", "beta", self.beta, zero=True, below=1)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "mean": theta, "round": torch.ones_like(theta[..., :1])}

    def device(self, theta: Vector) -> State:
        return {"h": torch.zeros_like(theta), "last": torch.zeros_like(theta[..., :1])}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"], "round": server["round"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"], tilt=-device["h"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        faded = device["h"] / (down["round"] - device["last"])
        h = faded + self.mu / share * (down["theta"] - found.theta)
        return {"h": h, "last": down["round"].expand_as(device["last"])}, {"theta": found.theta}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        mean = total["theta"] / count
        return {"theta": mean - self.beta * (server["mean"] - mean), "mean": mean, "round": server["round"] + 1}

    def carry(self, server: State, unsent: State) -> State:
        """mean^t = theta^{t-1} + 1/|P_t| SUM (x_k - w), where devices were sent w for theta^{t-1}."""
        theta = server["theta"] + (1 + self.beta) * unsent["theta"]
        return {**server, "theta": theta, "mean": server["mean"] + unsent["theta"]}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0

    def held(self, device: State, share: Scalar) -> State:
        return {}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """The server knows nothing of its devices' number."""
        return server
