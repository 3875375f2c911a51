r"""FedDyn: federated learning by dynamic regularization (Acar et al., ICLR 2021, Algorithm 1).

Round t, for every active device k in P_t, with lambda_k^{t-1} standing for the paper's grad L_k(theta_k^{t-1}):

    theta_k^t  = argmin_theta  L_k(theta) - <lambda_k^{t-1}, theta> + alpha_k/2 ||theta - theta^{t-1}||^2
    lambda_k^t = lambda_k^{t-1} - alpha_k (theta_k^t - theta^{t-1})

A device that is not active keeps both. The server, of m devices:

    h^t     = h^{t-1} - alpha/m  SUM_{k in P_t} (theta_k^t - theta^{t-1})
    theta^t = 1/|P_t| SUM_{k in P_t} theta_k^t  -  h^t / alpha

The first-order condition of the device's problem makes lambda_k^t = grad L_k(theta_k^t), and the sums telescope to
h^t = 1/m SUM_k share_k lambda_k^t, the gradient of the pooled loss taken at the devices' models: where everything
stands still, h = 0 and theta is a stationary point of the pooled loss.

Where this differs from the print: the pseudocode's parenthesis subtracts theta^{t-1} once; it belongs inside the sum.
Unbalanced data, as in the authors' code: alpha_k = alpha / share_k on the device; on the server alpha, and means that
are not weighted.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class FedDyn(Algorithm):
    """FedDyn, the paper's Algorithm 1, with `alpha` > 0 for its dynamic regularizer (its experiments: 0.001 to 0.1).

    With `OneStep()` as its solver this is FedDynOneGD, the paper's Algorithm 2.
    """

    alpha: Scalar
    as_sent = ("theta",)
    remembers_unsent = True
    remedy = "a larger alpha (as long as lr * alpha / share stays well below 2 on the smallest device)"

    def __post_init__(self) -> None:
        require_number("FedDyn", "alpha", self.alpha)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "h": torch.zeros_like(theta)}

    def device(self, theta: Vector) -> State:
        return {"lambda": torch.zeros_like(theta)}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"], tilt=-device["lambda"], prox=self.alpha / share, center=down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        slope = device["lambda"] - self.alpha / share * (found.theta - down["theta"])
        return {"lambda": slope}, {"theta": found.theta}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        h = server["h"] - self.alpha / devices * (total["theta"] - count * server["theta"])
        return {"theta": total["theta"] / count - h / self.alpha, "h": h}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0

    def held(self, device: State, share: Scalar) -> State:
        return {"h": share * device["lambda"]}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """h = 1/m SUM share_k lambda_k = 1/N SUM n_k lambda_k, and newcomers have lambda = 0:  h <- h N/N'."""
        return {**server, "h": server["h"] * (before.samples / after.samples)}
