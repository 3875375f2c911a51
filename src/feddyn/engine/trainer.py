"""One process's part of a round: devices solve their problems, and what they report is stored and added up."""

from itertools import accumulate
from typing import NamedTuple

import torch

from feddyn.algorithms.base import Algorithm, Scalar, Solution, State, Vector
from feddyn.data.population import Population
from feddyn.engine.store import Store
from feddyn.errors import DivergenceError, InputError
from feddyn.models.flat import FlatModel
from feddyn.origin import telling
from feddyn.round.local import Local, advice
from feddyn.round.seeds import device_seeds
from feddyn.round.sums import ExactSums
from feddyn.solvers.base import Solver
from feddyn.wire.base import Compressor
from feddyn.wire.uplink import Uplink

LATEST, UNSENT = "latest", "unsent"
"""What is kept for a device beside its state: its latest model, and what of its uploads was not sent."""

SHOWN = 5
"""Devices that an error names."""


class Task(NamedTuple):
    """Devices to train in one go: the task's place in the round, the slots of the devices' states (None: the initial
    one) and of what becomes of them, and the part of its steps that each gets done."""

    number: int
    round: int
    devices: list[int]
    old: list[int | None]
    new: list[int]
    effort: list[float]


class Effort(NamedTuple):
    """What training took: gradients of samples, and the bytes of compressed uploads."""

    gradients: int = 0
    sent: int = 0

    def plus(self, other: "Effort") -> "Effort":
        """The sum of two efforts."""
        return Effort(self.gradients + other.gradients, self.sent + other.sent)


class Trainer:
    """Trains devices, in stacks of up to `stack` or, where that is 1, one by one.

    With `track_all`, the devices' latest models are kept, for the mean over all of them. `layout` says where in a sum
    the uploads and the models of the round stand; behind their weight are the `norms` of how far devices moved and of
    their states.
    """

    def __init__(
        self,
        model: FlatModel,
        population: Population,
        algorithm: Algorithm,
        solver: Solver,
        *,
        seed: int,
        stack: int,
        state_memory: int,
        track_all: bool,
        uplink: Compressor | None = None,
    ):
        self.model, self.population, self.algorithm, self.solver, self.seed = model, population, algorithm, solver, seed
        self.track_all, self.sums = track_all, ExactSums(population.devices)
        self.local = Local(model, population, solver, seed, stack)
        self.initial = model.theta.clone()
        solution = Solution(self.initial, 1.0)
        down, state = algorithm.broadcast(algorithm.server(self.initial)), algorithm.device(self.initial)
        _, self.upload = algorithm.report(down, state, 0.5, solution)
        for what, vectors in (("what is broadcast", down), ("a device's state", state), ("the upload", self.upload)):
            self._require_vectors(what, vectors)
        self.down = {name: vector.numel() for name, vector in down.items()}
        # a method that uploads the model itself, of weight 1, has the sum of the models already
        same = [name for name, vector in self.upload.items() if vector is solution.theta and algorithm.weight(0.5) == 1]
        self.model_sum = f"up.{same[0]}" if same else "model"
        sizes = {f"up.{name}": vector.numel() for name, vector in self.upload.items()}
        self.norms = ("drift", *state, *(["unsent"] if uplink else []))
        sizes |= {"weight": 1 + len(self.norms), self.model_sum: model.size}
        sizes |= {"before": model.size} if track_all else {}
        self.uplink = Uplink(uplink, algorithm, self.initial, model.sizes) if uplink else None
        ends = list(accumulate(sizes.values()))
        self.layout = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}
        self.width = ends[-1]
        kept = {f"state.{name}": vector for name, vector in state.items()}
        if self.uplink and self.uplink.feedback:
            kept[UNSENT] = torch.zeros_like(self.initial)
        self.store = Store(kept | ({LATEST: self.initial} if track_all else {}), population.devices, state_memory)

    def train(self, task: Task, down: State, total: torch.Tensor) -> Effort:
        """Train the devices of a task and add their reports to a sum; what it took."""
        first = [f"{self.population.name(k)} ({self.population.size(k)} samples)" for k in task.devices[:SHOWN]]
        more = f" and {len(task.devices) - SHOWN} more" if len(task.devices) > SHOWN else ""
        with telling(f"training device {', '.join(first)}{more} in round {task.round + 1} failed"):
            return self._train(task, down, total)

    def _train(self, task: Task, down: State, total: torch.Tensor) -> Effort:
        kept = self.store.named(self.store.read(task.old).to(self.initial.device))
        shares = self.population.shares_of(task.devices)
        share: Scalar = float(shares[0]) if len(shares) == 1 else torch.from_numpy(shares).to(self.initial)[:, None]
        if not self.local.in_stacks:
            kept = {name: vectors[0] for name, vectors in kept.items()}
        state = own_state(kept)
        problem = self.algorithm.problem(down, state, share)
        found, gradients = self.local.solve(problem, task.round, task.devices, effort=task.effort)
        kinds, unsent, lengths = _shapes(state), dict[str, Vector](), list[int]()
        if self.uplink:
            if not self.sums.fits(found.theta):
                raise self._diverged(self.model_sum, found.theta, task)
            seeds = device_seeds(self.seed, "uplink", task.round, task.devices).tolist()
            reference = self.uplink.reference(down, state, problem.start, found.path)
            seen, unsent[UNSENT], lengths, _ = self.uplink.send(reference, found.theta, kept.get(UNSENT), seeds)
            found = found._replace(theta=seen)
        state, up = self.algorithm.report(down, state, share, found)
        if self.uplink and self.uplink.rounds_apart:
            up = self.uplink.upload(down, share, found)
        self._require_same("keep", kinds, _shapes(state))
        self._require_same("upload", _shapes(self.upload), _shapes(up))
        weight = self.algorithm.weight(share)
        terms = {f"up.{name}": vector for name, vector in up.items()}
        norms = [v.norm(dim=-1, keepdim=True) for v in (found.theta - problem.start, *state.values(), *unsent.values())]
        terms["weight"] = torch.cat([weight * torch.ones_like(norms[0]), *norms], -1).clamp_(max=self.sums.limit / 2)
        if self.model_sum not in terms:
            terms[self.model_sum] = weight * found.theta
        if self.track_all:
            terms["before"] = weight * kept[LATEST]
        for name, vector in terms.items():
            if not self.sums.add(total[:, self.layout[name]], vector):
                raise self._diverged(name, vector, task)
        states = {f"state.{name}": vector for name, vector in state.items()}
        for name, vector in {**states, **{f"up.{name}": vector for name, vector in unsent.items()}}.items():
            if not self.sums.fits(vector):
                raise self._diverged(name, vector, task)
        self.store.write(task.new, {LATEST: found.theta, **unsent, **states})
        return Effort(gradients, sum(lengths))

    def _require_same(self, what: str, before: dict[str, int], now: dict[str, int]) -> None:
        """A method of somebody's own may forget a vector; sums and states have room for the ones it had at first."""
        if before != now:
            words = f"what devices {what} must be the same vectors every time, not {before} and then {now}"
            raise InputError(f"{type(self.algorithm).__name__}: {words}")

    def _require_vectors(self, what: str, state: State) -> None:
        """Refuse what a method of somebody's own may send or keep, but sums, states and wires have no room for."""
        for name, value in state.items():
            if not isinstance(value, torch.Tensor) or value.dim() != 1 or value.dtype != self.initial.dtype:
                kind = (
                    f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value)
                )
                raise InputError(
                    f"{type(self.algorithm).__name__}: {what} has {name!r}, a {kind}; give vectors (one axis) of the "
                    f"model's type, {self.initial.dtype}"
                )

    def _diverged(self, name: str, vectors: Vector, task: Task) -> DivergenceError:
        rows = vectors.reshape(len(task.devices), -1).double()
        first = int((~(rows.abs().amax(1) < self.sums.limit)).nonzero()[0])
        kind, _, word = name.partition(".")
        what = (
            "its model" if name == self.model_sum else f"its state {word}" if kind == "state" else f"its upload {word}"
        )
        device, norm = self.population.name(task.devices[first]), float(rows[first].norm())
        words = f"device {device} diverged in round {task.round + 1} (the norm of {what} is {norm:.1e})"
        return DivergenceError(f"{words}; {advice(self.algorithm, self.solver)}")


def own_state(kept: State) -> State:
    """The state that a method gave a device, of all that is kept for it."""
    return {name.removeprefix("state."): v for name, v in kept.items() if name.startswith("state.")}


def _shapes(state: State) -> dict[str, int]:
    """The names of vectors and their lengths."""
    return {name: vector.shape[-1] if vector.dim() else 0 for name, vector in state.items()}
