r"""FedDR: federated Douglas-Rachford splitting (Tran-Dinh, Pham, Phan & Nguyen, NeurIPS 2021, Algorithm 1), for g = 0.

Device k remembers its last solution x_k and the point y_k around which it was sought. Round t, for every active device:

    y_k^t = y_k^{t-1} + relax (theta^{t-1} - x_k^{t-1})
    x_k^t = argmin_x  f_k(x) + alpha_k/2 ||x - y_k^t||^2 ,   started at theta^{t-1}

A device that is not active keeps both. The server's model is the mean of reflections over *all* devices,

    theta^t = 1/m SUM_k (2 x_k^t - y_k^t) ,   kept up by the uploads  (2 x_k^t - y_k^t) - (2 x_k^{t-1} - y_k^{t-1})

(the paper's alpha is `relax` here, its eta is 1/alpha). With lambda_k = alpha_k (y_k - x_k) = grad f_k(x_k) this is
theta = mean_all x_k - h/alpha, h = 1/m SUM_k share_k lambda_k, and for relax = 1 the device's problem is FedDyn's: the
two differ only in whose models the server averages, those of all devices or those of the active ones. So the mean has
no sampling noise, and the server's model does not overshoot where few devices are active. `relax` near 2 is
Peaceman-Rachford splitting (FedSplit).

Ours is the start. The paper starts all devices at theta^0, or with a first round of everybody; devices that were never
active then hold the mean back at theta^0 for long. Here a device joins with what it finds at its first activity, around
the server's model: x_k = y_k, which is a lambda_k of 0. The mean is over the `seen` devices, that have joined. From the
round on in which the last one joins, this is FedDR with that start, and as exact; until then nobody's reflection is far
out (with y_k = theta^{t-1} at the first activity, the server's model overshot about twice as far on quadratics).

Unequal devices, as in FedDyn: alpha_k = alpha / share_k, and means that are not weighted, so that the fixed point is
the optimum of the pooled loss. The equations are from memory of the paper and were checked by what they have to do
(fixed point, invariant, limits); docs/methods/feddr.md says where the authors' code differs.
"""

from dataclasses import dataclass
from typing import final

import torch

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.checks import require_number


@final
@dataclass(frozen=True)
class FedDR(Algorithm):
    """FedDR with penalty `alpha` > 0, FedDyn's, and relaxation `relax` in (0, 2); 1 is FedDyn's device."""

    alpha: Scalar
    relax: Scalar = 1.0
    as_sent = ()
    remembers_unsent = True
    remedy = (
        "a larger alpha (as long as lr * alpha / share stays well below 2 on the smallest device), or a smaller relax"
    )

    def __post_init__(self) -> None:
        require_number("FedDR", "alpha", self.alpha)
        require_number("FedDR", "relax", self.relax, below=2)

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "reflected": torch.zeros_like(theta), "seen": torch.zeros_like(theta[..., :1])}

    def device(self, theta: Vector) -> State:
        return {"x": torch.zeros_like(theta), "y": torch.zeros_like(theta), "seen": torch.zeros_like(theta[..., :1])}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"], prox=self.alpha / share, center=self._center(down, device))

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        y = torch.lerp(found.theta, self._center(down, device), device["seen"])  # who joins: x_k
        reflected = 2 * found.theta - y - (2 * device["x"] - device["y"])
        seen = torch.ones_like(device["seen"])
        return {"x": found.theta, "y": y, "seen": seen}, {"reflected": reflected, "joined": seen - device["seen"]}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        """Means over all devices, of which the unseen have 0; theta is the mean over the seen ones."""
        reflected = server["reflected"] + total["reflected"] / devices
        seen = (server["seen"] * devices + total["joined"]).round() / devices
        return {"theta": reflected / seen, "reflected": reflected, "seen": seen}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0

    def reference(self, down: State, device: State, path: Scalar | None) -> Vector | None:
        """Its upload is 2 x_k - y_k less what it was, which is 0 at half of y_k plus what it was; for who joins, it is
        x_k itself, and the server knows theta."""
        known = (self._center(down, device) + 2 * device["x"] - device["y"]) / 2
        return torch.lerp(down["theta"], known, device["seen"])

    def held(self, device: State, share: Scalar) -> State:
        return {"reflected": 2 * device["x"] - device["y"], "seen": device["seen"]}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """Newcomers are unseen: reflected, seen <- reflected m/m', seen m/m', and theta stays what it is."""
        part = before.devices / after.devices
        return {**server, "reflected": server["reflected"] * part, "seen": server["seen"] * part}

    def _center(self, down: State, device: State) -> Vector:
        """y_k^t; of a device that joins, which has x_k = y_k = 0 and seen = 0, it is theta."""
        relax = 1 + device["seen"] * (self.relax - 1)
        return device["y"] + relax * (down["theta"] - device["x"])
