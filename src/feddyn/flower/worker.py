"""What a site computes: a device of the simulator, alone with its data. Nothing else of a site needs torch."""

from collections.abc import Callable
from functools import cached_property
from typing import final

import torch
from torch import nn

from feddyn.algorithms.base import Algorithm, Solution, State
from feddyn.data.population import Population
from feddyn.errors import DivergenceError, InputError
from feddyn.flower.arithmetic import MESSAGE, arrays, identity, tensors, uplink_of
from feddyn.flower.broadcasts import START
from feddyn.flower.device import Trained
from feddyn.flower.letters import BadLetterError, Vectors, beside, message, own, together
from feddyn.models.flat import FlatModel, Loss
from feddyn.round.confined import confined
from feddyn.round.local import Local, advice
from feddyn.round.rehearsal import try_out
from feddyn.round.seeds import device_seeds
from feddyn.solvers.base import Solve
from feddyn.solvers.own import as_solver
from feddyn.wire.base import Compressor, models_broadcast
from feddyn.wire.common import common, hear, unmoved
from feddyn.wire.uplink import Uplink

UNSENT, MOVED = "unsent", "moved."
"""What a site keeps beside the method's state: what of its uploads was not sent, and w - theta^0 as it heard it."""


@final
class SiteWorker:
    """A site with a method, a solver, a model and a function that loads its samples: a population of one device, which
    is called only where samples are needed. Uploads and broadcasts are compressed, or (None) not."""

    def __init__(
        self,
        algorithm: Algorithm,
        solver: Solve,
        model: nn.Module,
        loss: Loss,
        load: Callable[[], Population],
        uplink: Compressor | None = None,
        downlink: Compressor | None = None,
    ):
        self.algorithm, self.solver, self._load = algorithm, as_solver(solver), load
        self._uplink, self._downlink = uplink, downlink
        self.model = FlatModel(model, loss)
        self._models = models_broadcast(algorithm, self.model.theta.cpu())
        self.key = identity(algorithm, self.model, uplink, downlink)

    @cached_property
    def population(self) -> Population:
        """The site's samples, which fit the model."""
        population = self._load().to(self.model.theta.dtype, self.model.theta.device)
        if population.devices != 1:
            raise InputError(f"a site has the samples of one device, not of {population.devices}")
        try_out(self.model, population)
        return population

    @property
    def samples(self) -> int:
        return self.population.total

    @cached_property
    def uplink(self) -> Uplink | None:
        """How uploads are compressed."""
        if self._uplink is None:
            return None
        return uplink_of(self._uplink, self.algorithm, self.model.theta.clone(), self.model.sizes)

    def begin(self, hello: Vectors) -> Vectors:
        given, more = tensors(hello), State()
        if self.uplink and self.uplink.feedback:
            more[UNSENT] = torch.zeros_like(given["theta"])
        if self._downlink:
            more[START] = given.get(START, given["theta"])
            moved = unmoved(self._models, self._first(more[START]))
            more |= {MOVED + name: vector for name, vector in moved.items()}
        return together(arrays(self.algorithm.device(given["theta"])), arrays(more))

    def train(self, down: Vectors, state: Vectors, share: float, seed: int, round: int, number: int) -> Trained:
        local = Local(self.model, self.population, self.solver, seed, stack=1)
        kept = self._placed(own(state))
        sent, more = self._hear(down, self._placed(beside(state)))
        if local.in_stacks:
            kept = {name: vector[None] for name, vector in kept.items()}
        with confined(self.model.theta.device):
            self.model.module.train()
            problem = self.algorithm.problem(sent, kept, share)
            found, gradients = local.solve(problem, round, [0], [number])
            text = None
            if self.uplink is not None:
                self._finite({"theta": found.theta}, round)
                seeds = device_seeds(seed, "uplink", round, [number]).tolist()
                reference = self.uplink.reference(sent, kept, problem.start, found.path)
                seen, unsent, _, (text,) = self.uplink.send(reference, found.theta, more.get(UNSENT), seeds)
                found, more = found._replace(theta=seen), more | ({UNSENT: unsent} if self.uplink.feedback else {})
            after, upload = self.algorithm.report(sent, kept, share, found)
        new = together(self._finite(after, round), self._finite(more, round))
        if text is None:
            return Trained(new, self._finite(upload, round), gradients)
        return Trained(new, {MESSAGE: message(text)}, gradients, self._path(found))

    def _finite(self, state: State, round: int) -> Vectors:
        """Vectors to keep or to send, without the axis of a stack."""
        if not all(bool(vector.isfinite().all()) for vector in state.values()):
            words = f"training diverged in round {round + 1}: what this site found is not finite"
            raise DivergenceError(f"{words}; {advice(self.algorithm, self.solver)}")
        return arrays({name: vector.reshape(-1) for name, vector in state.items()})

    def _path(self, found: Solution) -> float | None:
        """What the server needs beside a message."""
        return float(found.path) if self.algorithm.needs_path and found.path is not None else None

    def _first(self, theta: torch.Tensor) -> State:
        """What is broadcast before the first round, at theta^0."""
        return self.algorithm.broadcast(self.algorithm.server(theta))

    def _hear(self, down: Vectors, more: State) -> tuple[State, State]:
        """A broadcast, with w = theta^0 + moved in the place of messages, and what is then kept beside the state."""
        if self._downlink is None:
            return self._placed(down), more
        start, heard = self._first(more[START]), State()
        try:
            for name in self._models:
                heard[name] = hear(self._downlink, self.model.sizes, more[MOVED + name], down[name].tobytes())
        except (InputError, KeyError):
            raise BadLetterError("bad broadcast") from None
        plain = self._placed({name: vector for name, vector in down.items() if name not in heard})
        models = {name: common(start[name], moved) for name, moved in heard.items()}
        return plain | models, more | {MOVED + name: moved for name, moved in heard.items()}

    def _placed(self, vectors: Vectors) -> State:
        return {name: vector.to(self.model.theta.device) for name, vector in tensors(vectors).items()}
