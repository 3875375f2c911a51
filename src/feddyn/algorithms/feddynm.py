r"""FedDynM: FedDyn whose server looks ahead along its last move. It is this project's, and rests where FedDyn does.

The server sends devices where its last move will take it, s^{t-1}, and everything of FedDyn is taken at s. Round t, for
every active device k in P_t:

    theta_k^t  = argmin_theta  f_k(theta) - <lambda_k^{t-1}, theta> + alpha_k/2 ||theta - s^{t-1}||^2 , from s^{t-1} on
    lambda_k^t = lambda_k^{t-1} - alpha_k (theta_k^t - s^{t-1})

A device that is not active keeps its state. The server, of m devices, with s^0 = theta^0:

    h^t     = h^{t-1} - alpha/m  SUM_{k in P_t} (theta_k^t - s^{t-1})
    theta^t = 1/|P_t| SUM_{k in P_t} theta_k^t  -  h^t / alpha
    s^t     = theta^t + momentum (theta^t - theta^{t-1})

lambda_k and h change by the same sums as in FedDyn, so that h^t = 1/m SUM_k share_k lambda_k^t, and the device's
first-order condition makes lambda_k^t = grad f_k(theta_k^t). Where everything stands still s = theta and h = 0, and
theta is a stationary point of the pooled loss, as in FedDyn, which this is with momentum 0. One vector goes each way.

The look-ahead is that of FedACG (Kim, Kim & Han, CVPR 2024) and of Nesterov; FedACG has neither lambda_k nor h, and
rests elsewhere. No rate is proved for the two together, and too much momentum diverges: with exact solutions, all
devices active and losses of one curvature L, x = alpha/L,

    mean_k theta_k^{t+1} (1 + x) = (1 + (x - 1)(1 + momentum)) mean_k theta_k^t - (x - 1) momentum mean_k theta_k^{t-1}

about the optimum, which converges for momentum < (1 + 2 x) / (2 (1 - x)): up to 1/2 for every alpha, and for all
momenta below 1 only where alpha >= L/4.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class FedDynM(Algorithm):
    """FedDyn with `alpha` > 0 and server `momentum` in [0, 1); above 1/2 it may diverge where alpha is small."""

    alpha: Scalar
    momentum: Scalar
    as_sent = ("ahead",)
    remembers_unsent = True
    remedy = "a momentum of at most 0.5, or a larger alpha (lr * alpha / share well below 2 on every device)"

    def __post_init__(self) -> None:
        require_number("FedDynM", "alpha", self.alpha)
        require_number("FedDynM", "momentum", self.momentum, zero=True, below=1)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "ahead": theta, "h": torch.zeros_like(theta)}

    def device(self, theta: Vector) -> State:
        return {"lambda": torch.zeros_like(theta)}

    def broadcast(self, server: State) -> State:
        return {"ahead": server["ahead"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["ahead"], tilt=-device["lambda"], prox=self.alpha / share, center=down["ahead"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        slope = device["lambda"] - self.alpha / share * (found.theta - down["ahead"])
        return {"lambda": slope}, {"theta": found.theta}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        h = server["h"] - self.alpha / devices * (total["theta"] - count * server["ahead"])
        theta = total["theta"] / count - h / self.alpha
        return {"theta": theta, "ahead": theta + self.momentum * (theta - server["theta"]), "h": h}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0

    def held(self, device: State, share: Scalar) -> State:
        return {"h": share * device["lambda"]}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """h = 1/m SUM share_k lambda_k = 1/N SUM n_k lambda_k, and newcomers have lambda = 0:  h <- h N/N'."""
        return {**server, "h": server["h"] * (before.samples / after.samples)}
