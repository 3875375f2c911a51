"""What every method is: a small pure map between vectors.

A method hands each active device k one problem,

    minimise  f_k(theta) + <tilt, theta> + prox/2 * ||theta - center||^2 ,  starting at `start`,

and turns what the device found into the device's next state and an upload. The server sees the sum of the uploads and
how many there were, never a list. All of it is plain tensor arithmetic on the last axis, so the same code runs on one
vector, on a stack of devices (devices on axis -2) and on a sweep of settings (any axes before that).
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, TypeAlias

import torch

from feddyn.errors import InputError

Vector: TypeAlias = torch.Tensor
"""A flat model or gradient: shape (d,), or (..., d) when stacked."""
Scalar: TypeAlias = float | torch.Tensor
"""A number, or a column (..., 1) of numbers when stacked."""
State: TypeAlias = dict[str, Vector]
"""Named vectors: what a server or device remembers, or what crosses the wire."""


class Problem(NamedTuple):
    """What an active device has to minimise. `tilt` None is zero; `center` matters only where `prox` is not zero."""

    start: Vector
    tilt: Vector | None = None
    prox: Scalar = 0.0
    center: Vector | None = None

    def penalised(self, loss: torch.Tensor, theta: Vector) -> torch.Tensor:
        """loss + <tilt, theta> + prox/2 ||theta - center||^2, differentiable; `loss` is the device's at theta.

        >>> problem = Problem(torch.zeros(2), torch.tensor([1.0, 2.0]), 4.0, torch.tensor([0.0, 1.0]))
        >>> problem.penalised(torch.tensor(10.0), torch.tensor([3.0, 1.0]))
        tensor(33.)
        """
        if self.tilt is not None:
            loss = loss + (self.tilt * theta).sum(-1)
        if self.center is not None:
            loss = loss + (self.prox / 2 * (theta - self.center).square()).sum(-1)
        return loss

    def penalised_slope(self, gradient: Vector, theta: Vector) -> Vector:
        """gradient + tilt + prox (theta - center), the slope of `penalised`; `gradient` is that of the loss at theta.

        >>> problem = Problem(torch.zeros(2), torch.tensor([1.0, 2.0]), 4.0, torch.tensor([0.0, 1.0]))
        >>> problem.penalised_slope(torch.zeros(2), torch.tensor([3.0, 1.0]))
        tensor([13.,  2.])
        """
        if self.tilt is not None:
            gradient = gradient + self.tilt
        if self.center is not None:
            gradient = gradient + self.prox * (theta - self.center)
        return gradient


class Solution(NamedTuple):
    """What a solver found. `path` is the sum of the step sizes it walked (in general, of the numbers by which it
    multiplied gradients to get from start to theta), None where it has none to report."""

    theta: Vector
    path: Scalar | None = None


class Census(NamedTuple):
    """How many devices there are, and samples on all of them."""

    devices: int
    samples: int


class Algorithm(ABC):
    """A federated method. Final classes implement it; none extends another.

    `share` is n_k / mean(n), the device's part of the data relative to an equal split.
    """

    needs_path: ClassVar[bool] = False
    """Whether `report` needs the solution's path."""
    as_sent: ClassVar[tuple[str, ...] | None] = None
    """The server's vectors that `aggregate` takes for what devices were sent; empty: it takes none so. Where broadcasts
    are compressed, it is given these as they were really sent, and all others as they are. For a method that
    does not say it (None), compressed broadcasts are refused: an error would go unnoticed."""
    carries: ClassVar[tuple[str, ...]] = ()
    """The server's vectors in which nothing of the broadcast ones is left: they are made of what devices found. Where
    broadcasts are compressed, `carry` adds to them what devices were not sent."""
    remembers_unsent: ClassVar[bool | None] = None
    """Whether a device's state, computed from what the server sees of its model, asks for the rest again. Devices whose
    state does not, or who have none, are given a memory of it where uploads are compressed. A method whose devices have
    a state, and that does not say it (None), is refused there: a second memory would count everything twice."""
    remedy: ClassVar[str] = ""
    """What of the method's own parameters usually helps where training diverges."""

    @abstractmethod
    def server(self, theta: Vector) -> State:
        """The server's state before the first round; `theta` is its model."""

    @abstractmethod
    def device(self, theta: Vector) -> State:
        """A device's state before its first activity; `theta` is the initial model."""

    @abstractmethod
    def broadcast(self, server: State) -> State:
        """All that an active device may see of the server."""

    @abstractmethod
    def problem(self, down: State, device: State, share: Scalar) -> Problem:
        """What the device has to solve this round."""

    @abstractmethod
    def report(self, down: State, device: State, share: Scalar, found: Solution) -> tuple[State, State]:
        """The device's next state, and its upload."""

    @abstractmethod
    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        """The server's next state from the sum of `count` uploads, of `devices` devices in all."""

    @abstractmethod
    def weight(self, share: Scalar) -> Scalar:
        """The device's weight in the means of the active and of all device models; over all devices it has mean 1."""

    def reference(self, down: State, device: State, path: Scalar | None) -> Vector | None:
        """The model of which the server knows the upload before it hears of the device, which walked a `path` of that
        length, and from which compressed uploads are measured; None: where the device starts. A method has another one
        where its upload depends on the device's state, or what it sums up is a difference to something else."""
        return None

    def carry(self, server: State, unsent: State) -> State:
        """The server's next state, where what devices were sent was less than the broadcast by `unsent`: as if they had
        moved from the broadcast as they did from what they were sent."""
        return {**server, **{name: server[name] + unsent[name] for name in self.carries}}

    def held(self, device: State, share: Scalar) -> State:
        """What the server's state holds of a device's: at any time server[name] = 1/m SUM_k held_k[name] over all m
        devices, for every name here. A method whose devices keep nothing holds nothing."""
        if device:
            name = type(self).__name__
            raise InputError(f"{name}: what the server holds of its devices' states is not known; give it `held`")
        return {}

    def admit(self, server: State, before: Census, after: Census) -> State:
        """The server's state when devices join, whose states are made by `device` at the server's model: what makes
        `held` true again, now with the shares of all of them. A method whose devices keep nothing has nothing to do."""
        if self.device(server["theta"]):
            name = type(self).__name__
            raise InputError(f"{name}: devices cannot join a federation that has begun; give it `admit`")
        return server


def models_uploaded(algorithm: Algorithm, theta: Vector) -> int:
    """How many vectors of the model's size an active device uploads; a number beside them, such as a share, is none.

    >>> from feddyn.algorithms import FedAvg, Scaffold
    >>> models_uploaded(FedAvg(), torch.zeros(1)), models_uploaded(Scaffold(), torch.zeros(10))
    (1, 2)
    """
    if theta.shape[-1] == 1:  # where a model is one number, only a larger one tells the two apart
        theta = theta.repeat_interleave(2, dim=-1)
    down, state = algorithm.broadcast(algorithm.server(theta)), algorithm.device(theta)
    _, upload = algorithm.report(down, state, 1.0, Solution(theta, 1.0))
    return sum(vector.shape[-1] // theta.shape[-1] for vector in upload.values())


def weighted_mean_upload(share: Scalar, theta: Vector) -> State:
    """The upload of a mean weighted by the devices' data: share_k * theta_k and share_k itself."""
    return {"theta": share * theta, "share": share * torch.ones_like(theta[..., :1])}
