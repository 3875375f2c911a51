"""What a site computes: a device of the simulator, alone with its data. Nothing else of a site needs torch."""

from collections.abc import Callable
from functools import cached_property
from typing import final

from torch import nn

from feddyn.algorithms.base import Algorithm, State
from feddyn.data.population import Population
from feddyn.errors import DivergenceError, InputError
from feddyn.flower.arithmetic import arrays, identity, tensors
from feddyn.flower.device import Trained
from feddyn.flower.letters import Vectors
from feddyn.models.flat import FlatModel, Loss
from feddyn.round.local import Local
from feddyn.round.rehearsal import confined, try_out
from feddyn.solvers.base import Solve
from feddyn.solvers.own import as_solver

HELP = "what usually helps: a smaller lr, lr_decay below 1, clip, or for FedDyn a larger alpha"


@final
class SiteWorker:
    """A site with a method, a solver, a model and a function that loads its samples: a population of one device, which
    is called only where samples are needed."""

    def __init__(
        self, algorithm: Algorithm, solver: Solve, model: nn.Module, loss: Loss, load: Callable[[], Population]
    ):
        self.algorithm, self.solver, self._load = algorithm, as_solver(solver), load
        self.model = FlatModel(model, loss)
        self.key = identity(algorithm, self.model.theta.cpu())

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

    def begin(self, theta: Vectors) -> Vectors:
        return arrays(self.algorithm.device(tensors(theta)["theta"]))

    def train(self, down: Vectors, state: Vectors, share: float, seed: int, round: int, number: int) -> Trained:
        local = Local(self.model, self.population, self.solver, seed, stack=1)
        sent, kept = self._placed(down), self._placed(state)
        if local.in_stacks:
            kept = {name: vector[None] for name, vector in kept.items()}
        with confined(self.model.theta.device):
            self.model.module.train()
            problem = self.algorithm.problem(sent, kept, share)
            found, gradients = local.solve(problem, round, [0], [number])
            after, upload = self.algorithm.report(sent, kept, share, found)
        return Trained(_finite(after, round), _finite(upload, round), gradients)

    def _placed(self, vectors: Vectors) -> State:
        return {name: vector.to(self.model.theta.device) for name, vector in tensors(vectors).items()}


def _finite(state: State, round: int) -> Vectors:
    """Vectors to keep or to send, without the axis of a stack."""
    if not all(bool(vector.isfinite().all()) for vector in state.values()):
        raise DivergenceError(f"training diverged in round {round + 1}: what this site found is not finite; {HELP}")
    return arrays({name: vector.reshape(-1) for name, vector in state.items()})
