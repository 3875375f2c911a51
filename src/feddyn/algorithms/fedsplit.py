r"""FedSplit (Pathak & Wainwright, NeurIPS 2020), with the FedDyn paper's two forms for partial participation.

Round t, for every active device k in P_t, with z_k^0 = theta^0:

    theta_k   = prox_{s share_k f_k}(2 theta^{t-1} - z_k)
              = argmin_theta  f_k(theta) + 1/(2 s share_k) ||theta - (2 theta^{t-1} - z_k)||^2
    z_k^+     = z_k + 2 (theta_k - theta^{t-1})

A device that is not active keeps z_k. The server's model is

    'act':  theta^t = 1/|P_t| SUM_{k in P_t} z_k^+          the mean of the active devices
    'all':  theta^t = 1/m SUM_{k=1}^m z_k                   the mean of all, kept up by adding 1/m SUM (z_k^+ - z_k)

Both are the same with full participation. The share_k makes the fixed point the optimum of the pooled loss.
"""

from dataclasses import dataclass
from typing import Literal, final

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.checks import require_number
from feddyn.errors import InputError, nearest


@final
@dataclass(frozen=True)
class FedSplit(Algorithm):
    """FedSplit with proximal step `step` (the s above) and the mean over 'act' or 'all' devices."""

    step: Scalar
    mean: Literal["act", "all"] = "act"
    as_sent = ()
    remembers_unsent = True

    def __post_init__(self) -> None:
        require_number("FedSplit", "step", self.step)
        if self.mean not in ("act", "all"):
            raise InputError(f"FedSplit: mean {self.mean!r} is not known; {nearest(str(self.mean), ['act', 'all'])}")

    def server(self, theta: Vector) -> State:
        return {"theta": theta}

    def device(self, theta: Vector) -> State:
        return {"z": theta}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        center = 2 * down["theta"] - device["z"]
        return Problem(start=down["theta"], prox=1 / (self.step * share), center=center)

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        z = device["z"] + 2 * (found.theta - down["theta"])
        return {"z": z}, {"z": z if self.mean == "act" else z - device["z"]}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        if self.mean == "act":
            return {"theta": total["z"] / count}
        return {"theta": server["theta"] + total["z"] / devices}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0

    def held(self, device: State, share: Scalar) -> State:
        return {"theta": device["z"]} if self.mean == "all" else {}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """Newcomers have z_k = theta, which leaves the mean theta of all z_k what it is."""
        return server
