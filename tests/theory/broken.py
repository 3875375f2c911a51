"""FedDyn with one mistake each: those known from public versions of it, the pseudocode read literally, and shares
forgotten. With the small alphas of practice and few SGD steps they all train."""

from dataclasses import dataclass

import torch

from feddyn.algorithms import Algorithm, FedDyn, Problem, Solution
from feddyn.algorithms.base import Scalar, State, Vector
from feddyn.theory.problems import Losses
from feddyn.theory.verification.laboratory import Laboratory
from feddyn.theory.verification.laboratory import Offer as Offered
from feddyn.theory.verification.laboratory import State as Where


@dataclass(frozen=True)
class Broken(Algorithm):
    """FedDyn, to be broken in one place."""

    right: FedDyn

    def server(self, theta: Vector) -> State:
        return self.right.server(theta)

    def device(self, theta: Vector) -> State:
        return self.right.device(theta)

    def broadcast(self, server: State) -> State:
        return self.right.broadcast(server)

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return self.right.problem(down, device, share)

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return self.right.report(down, device, share, found)

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return self.right.aggregate(server, total, count, devices)

    def weight(self, share: Scalar) -> Scalar:
        return self.right.weight(share)


class DetachedPenalty(Broken):
    """The penalty is built from detached tensors: it has no gradient, so the device minimises its loss alone."""

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return Problem(start=down["theta"])


class NoQuadraticPart(Broken):
    """alpha/2 ||theta||^2 is dropped, -alpha <theta, theta^{t-1}> kept."""

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        right = self.right.problem(down, device, share)
        assert right.tilt is not None
        return Problem(right.start, right.tilt - right.prox * down["theta"])


class FlippedDualInProblem(Broken):
    """+ <lambda_k, theta> in the device's objective."""

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return self.right.problem(down, device, share)._replace(tilt=device["lambda"])


class FlippedDualInState(Broken):
    """lambda_k^t = lambda_k^{t-1} + alpha_k (theta_k^t - theta^{t-1})."""

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        state, upload = self.right.report(down, device, share, found)
        return {"lambda": 2 * device["lambda"] - state["lambda"]}, upload


class NoInverseAlpha(Broken):
    """theta^t = mean - h^t."""

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        h = self.right.aggregate(server, total, count, devices)["h"]
        return {"theta": total["theta"] / count - h, "h": h}


class AveragedOverActive(Broken):
    """h^t = h^{t-1} - alpha/|P_t| SUM_{k in P_t} (theta_k^t - theta^{t-1}): over the sampled devices, not over all."""

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return self.right.aggregate(server, total, count, count)


class LiteralParenthesis(Broken):
    """h^t = h^{t-1} - alpha/m ( SUM_{k in P_t} theta_k^t - theta^{t-1} ), as the pseudocode is printed."""

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        alpha = self.right.alpha
        h = server["h"] - alpha / devices * (total["theta"] - server["theta"])
        return {"theta": total["theta"] / count - h / alpha, "h": h}


class SharesIgnored(Broken):
    """alpha on every device, whatever its part of the data."""

    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        return self.right.problem(down, device, 1.0)

    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        return self.right.report(down, device, 1.0, found)


class UnsquaredNorm(Laboratory):
    """alpha/2 ||theta - theta^{t-1}|| in place of its square.

    Its minimiser is theta^{t-1} itself where ||grad L_k(theta^{t-1}) - lambda_k|| <= alpha/2, and elsewhere that of a
    squared penalty nu/2 ||theta - theta^{t-1}||^2 with nu ||theta - theta^{t-1}|| = alpha/2, found by bisection.
    """

    def _solve(self, problem: Problem) -> Solution:
        assert problem.center is not None
        assert problem.tilt is not None
        slope = (self.losses.gradients(problem.start) + problem.tilt).norm(dim=-1, keepdim=True)
        half = problem.prox / 2
        low, high = torch.full_like(slope, 1e-3), torch.full_like(slope, 1e4)
        for _ in range(20):
            nu = (low * high).sqrt()
            theta = self.losses.minimise(problem._replace(prox=nu)).theta
            short = nu * (theta - problem.center).norm(dim=-1, keepdim=True) < half
            low, high = torch.where(short, nu, low), torch.where(short, high, nu)
        return Solution(torch.where(slope <= half, problem.center.expand_as(theta), theta))


class LostButCommitted(Laboratory):
    """One device more than the server hears of commits its state: its upload was lost."""

    def complete(self, state: Where, offer: Offered, active: torch.Tensor) -> Where:
        after = super().complete(state, offer, active)
        lost = ~active & ((~active).cumsum(-1) == 1)
        committed = torch.where(lost.unsqueeze(-1), offer.devices["lambda"], after.devices["lambda"])
        return after._replace(devices={"lambda": committed})


ALGORITHMS = [
    DetachedPenalty,
    NoQuadraticPart,
    FlippedDualInProblem,
    FlippedDualInState,
    NoInverseAlpha,
    AveragedOverActive,
    LiteralParenthesis,
    SharesIgnored,
]
LABORATORIES = [UnsquaredNorm, LostButCommitted]


def laboratories(alpha: float, losses: Losses, one_step: bool = False) -> dict[str, Laboratory]:
    """Every mistake, by name."""
    right = FedDyn(alpha)
    broken = {kind.__name__: Laboratory(kind(right), losses, one_step) for kind in ALGORITHMS}
    return broken | {kind.__name__: kind(right, losses, one_step) for kind in LABORATORIES}
