"""The server's arithmetic: a method between vectors as they are sent (NumPy's) and as it computes (torch's)."""

from collections.abc import Iterable, Mapping
from typing import final

import numpy as np
import torch

from feddyn.algorithms.base import Algorithm, Solution, State, models_uploaded
from feddyn.errors import InputError
from feddyn.flower.letters import WIRE, Array, BadLetterError, Letter, Vectors, positive_in
from feddyn.flower.uploads import same
from feddyn.identity import describe
from feddyn.models.flat import FlatModel
from feddyn.round.sums import ExactSums, zeros
from feddyn.wire.base import Compressor, Sizes
from feddyn.wire.uplink import Uplink

MESSAGE = "message"
"""The name of a compressed upload in a letter."""
LONGEST = 16
"""Bytes a parameter that a message has at most, twice a number of float64."""


def tensors(vectors: Mapping[str, Array]) -> State:
    """Vectors to compute with."""
    return {name: torch.from_numpy(np.array(vector)) for name, vector in vectors.items()}


def arrays(state: State) -> Vectors:
    """Vectors to send or to keep."""
    return {name: vector.detach().cpu().contiguous().numpy() for name, vector in state.items()}


def identity(
    algorithm: Algorithm, model: FlatModel, uplink: Compressor | None = None, downlink: Compressor | None = None
) -> str:
    """Sixteen digits that stand for a method, a model's size and type, and where messages are compressed for how, and
    for the layers that they are cut by: server and sites must have the same."""
    parts: tuple[object, ...] = (describe(algorithm)["sha256"], model.size, str(model.theta.dtype))
    if uplink or downlink:
        parts += (model.sizes, *(describe(how)["sha256"] for how in (uplink, downlink)))
    return str(describe(parts)["sha256"])[:16]


def uplink_of(compressor: Compressor, algorithm: Algorithm, theta: torch.Tensor, sizes: Sizes) -> Uplink:
    """How sites of a method send compressed uploads; refused where the server cannot read them."""
    uplink = Uplink(compressor, algorithm, theta, sizes)
    if uplink.private:
        raise InputError(
            f"{type(algorithm).__name__}: its compressed uploads are measured from a device's own state, which the "
            "server of a deployment does not have; leave the uplink out, or use a method such as FedDyn"
        )
    return uplink


@final
class Arithmetic:
    """A method and the vectors that it sends, for a model that starts where it is; uploads and broadcasts are
    compressed, or (None) not."""

    def __init__(
        self,
        algorithm: Algorithm,
        model: FlatModel,
        uplink: Compressor | None = None,
        downlink: Compressor | None = None,
    ):
        self.algorithm, self.initial, self.sizes = algorithm, model.theta.detach().cpu().clone(), model.sizes
        self.key, self.downlink = identity(algorithm, model, uplink, downlink), downlink
        self.models = 1 if uplink else models_uploaded(algorithm, self.initial)
        solution = Solution(self.initial, 1.0)
        down, device = algorithm.broadcast(self.begin()), algorithm.device(self.initial)
        _, upload = algorithm.report(down, device, 0.5, solution)
        self.upload, self.state = arrays(upload), arrays(device)
        if reserved := [name for name in (*self.begin(), *device) if name.startswith(WIRE)]:
            raise InputError(f"{type(algorithm).__name__}: a vector cannot be called {reserved[0]!r} in a deployment")
        theta_of = [name for name, vector in upload.items() if vector is solution.theta]
        self._found = theta_of[0] if theta_of and algorithm.weight(0.5) == 1 else None
        self._uplink = uplink_of(uplink, algorithm, self.initial, self.sizes) if uplink else None

    def begin(self) -> State:
        """The server's state before the first round."""
        return self.algorithm.server(self.initial)

    def limit(self, sites: int) -> float:
        """Numbers of uploads stay below it."""
        return ExactSums(sites).limit

    def received(self, answer: Letter, down: State, share: float) -> Vectors:
        """The upload of a site of this share that was sent `down`, from its answer; a message is read with care, since
        anybody may have written it."""
        if self._uplink is None:
            return same(answer.vectors, self.upload)
        sent = answer.vectors.get(MESSAGE)
        if len(answer.vectors) != 1 or sent is None:
            raise BadLetterError("other names")
        if sent.dtype != np.uint8 or sent.ndim != 1 or sent.nbytes > LONGEST * (self.initial.numel() + 64):
            raise BadLetterError("another shape")
        path = positive_in(answer, "path") if self.algorithm.needs_path else None
        try:
            arrived = self._uplink.compressor.decode(sent.tobytes(), self.sizes)
        except Exception:  # a compressor of somebody's own may fail in any way on what it did not write
            raise BadLetterError("bad message") from None
        if arrived.shape != self.initial.shape:
            raise BadLetterError("another shape")
        return same(arrays(self._uplink.receive(down, share, arrived, path)), self.upload)

    def aggregate(self, server: State, uploads: Iterable[Vectors], sites: int) -> tuple[State, dict[str, torch.Tensor]]:
        """The server's next state from the exact sum of uploads, of so many sites in all; and where sites upload what
        they found, the mean of that, as `active`."""
        sums, count = ExactSums(sites), 0
        totals = {name: zeros(vector.size) for name, vector in self.upload.items()}
        for upload in uploads:
            for name, vector in tensors(upload).items():
                if not sums.add(totals[name], vector):
                    raise AssertionError("an upload that was checked is too large")
            count += 1
        total = {name: sums.value(added).to(self.initial.dtype) for name, added in totals.items()}
        found = {"active": total[self._found] / count} if self._found else {}
        return self.algorithm.aggregate(server, total, count, sites), found

    def rebuild(self, server: State, states: Iterable[tuple[Vectors, float]]) -> State:
        """The server's state from the states and shares of all its sites: server[name] = 1/m SUM_k held_k[name]."""
        totals: State = {}
        count = 0
        for vectors, share in states:
            for name, vector in self.algorithm.held(tensors(vectors), share).items():
                totals[name] = totals.get(name, torch.zeros(())) + vector.double()
            count += 1
        return {**server, **{name: (total / count).to(self.initial.dtype) for name, total in totals.items()}}
