"""The server's arithmetic: a method between vectors as they are sent (NumPy's) and as it computes (torch's)."""

from collections.abc import Iterable, Mapping
from typing import final

import numpy as np
import torch

from feddyn.algorithms.base import Algorithm, Solution, State, models_uploaded
from feddyn.flower.letters import Array, Vectors
from feddyn.identity import describe
from feddyn.round.sums import ExactSums, zeros


def tensors(vectors: Mapping[str, Array]) -> State:
    """Vectors to compute with."""
    return {name: torch.from_numpy(np.array(vector)) for name, vector in vectors.items()}


def arrays(state: State) -> Vectors:
    """Vectors to send or to keep."""
    return {name: vector.detach().cpu().contiguous().numpy() for name, vector in state.items()}


def identity(algorithm: Algorithm, theta: torch.Tensor) -> str:
    """Sixteen digits that stand for a method, and a model's size and type: server and sites must have the same."""
    parts = (describe(algorithm)["sha256"], theta.numel(), str(theta.dtype))
    return str(describe(parts)["sha256"])[:16]


@final
class Arithmetic:
    """A method and the vectors that it sends, for a model that starts at `theta`."""

    def __init__(self, algorithm: Algorithm, theta: torch.Tensor):
        self.algorithm, self.initial = algorithm, theta.detach().cpu().clone()
        self.key, self.models = identity(algorithm, self.initial), models_uploaded(algorithm, self.initial)
        solution = Solution(self.initial, 1.0)
        down, device = algorithm.broadcast(self.begin()), algorithm.device(self.initial)
        _, upload = algorithm.report(down, device, 0.5, solution)
        self.upload, self.state = arrays(upload), arrays(device)
        theta_of = [name for name, vector in upload.items() if vector is solution.theta]
        self._found = theta_of[0] if theta_of and algorithm.weight(0.5) == 1 else None

    def begin(self) -> State:
        """The server's state before the first round."""
        return self.algorithm.server(self.initial)

    def limit(self, sites: int) -> float:
        """Numbers of uploads stay below it."""
        return ExactSums(sites).limit

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
