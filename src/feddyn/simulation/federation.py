"""One round: broadcast, every active device solves its problem, the uploads are added up, the server moves."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from feddyn.algorithms.base import Algorithm, Problem, Solution, State, Vector
from feddyn.data.population import Population
from feddyn.errors import DivergenceError, InputError
from feddyn.local.work import Solver, Work
from feddyn.models.flat import FlatModel, Loss
from feddyn.simulation.randomness import generator, integer
from feddyn.simulation.rehearsal import confined, try_out

HELP = (
    "what usually helps: a smaller lr, lr_decay below 1, clip, or for FedDyn a larger alpha "
    "(as long as lr * alpha / share stays well below 2 on the smallest device)"
)


class Cost(NamedTuple):
    """What a round cost: the models a device transmits relative to FedAvg, bytes, and gradients of single samples."""

    models: int
    bytes_up: int
    bytes_down: int
    gradients: int


class Federation:
    """The server and its devices between rounds.

    `devices` and `latest` hold the states and the last models of the devices that were ever active; all others have the
    initial ones.
    """

    def __init__(
        self, module: nn.Module, population: Population, algorithm: Algorithm, solver: Solver, *, seed: int, loss: Loss
    ):
        self.model = FlatModel(module, loss)
        self.population = population.to(self.model.theta.dtype, self.model.theta.device)
        self.algorithm, self.solver, self.seed = algorithm, solver, seed
        try_out(self.model, self.population)
        self.initial = self.model.theta.clone()
        self.server = algorithm.server(self.initial)
        self._check_solver()
        self.devices: dict[int, State] = {}
        self.latest: dict[int, Vector] = {}
        self.active_mean = self.initial
        self._layers = _default_generator(self.initial.device)
        # the sum over all devices, kept up as they change; in float64 so that thousands of updates do not add up errors
        self._all_total = self.initial.double() * population.devices

    def _check_solver(self) -> None:
        """Refuse a solver that cannot solve this method's problems before any work is done."""
        if self.algorithm.needs_path and not getattr(self.solver, "walks", True):
            name = f"{type(self.algorithm).__name__} with {type(self.solver).__name__}"
            raise InputError(f"{name}: the method needs a solver that walks in steps and reports its path, such as SGD")
        if check := getattr(self.solver, "check", None):
            down, device = self.algorithm.broadcast(self.server), self.algorithm.device(self.initial)
            check(self.algorithm.problem(down, device, self.population.share(0)))

    @property
    def all_mean(self) -> Vector:
        """The weighted mean of all devices' latest models; a device that was never active has the initial one."""
        return (self._all_total / self.population.devices).to(self.initial.dtype)

    @property
    def models(self) -> dict[str, Vector]:
        """The three models that are reported: the server's, the mean of the active and the mean of all devices."""
        return {"server": self.server["theta"], "active": self.active_mean, "all": self.all_mean}

    def step(self, round: int, active: Sequence[int]) -> Cost:
        """Run one round, counted from 0; where a device diverges, nothing of the round is kept."""
        down = self.algorithm.broadcast(self.server)
        states, found, gradients = {}, {}, 0
        total: State = {}
        models_total: State = {}
        with confined(self.initial.device):
            self.model.module.train()
            for k in active:
                share = self.population.share(k)
                state = self.devices.get(k) or self.algorithm.device(self.initial)
                solution, spent = self._solve(self.algorithm.problem(down, state, share), round, k)
                states[k], up = self.algorithm.report(down, state, share, solution)
                found[k], gradients = solution.theta, gradients + spent
                weight = self.algorithm.weight(share)
                add(total, up)
                add(
                    models_total,
                    {"theta": weight * solution.theta, "weight": weight * torch.ones_like(solution.theta[:1])},
                )
        self.server = self.algorithm.aggregate(self.server, total, len(active), self.population.devices)
        self.active_mean = models_total["theta"] / models_total["weight"]
        for k in active:
            change = found[k].double() - self.latest.get(k, self.initial)
            self._all_total += self.algorithm.weight(self.population.share(k)) * change
        self.devices |= states
        self.latest |= found
        return Cost(
            models=sum(v.numel() for v in up.values()) // self.initial.numel(),
            bytes_up=len(active) * sum(v.nbytes for v in up.values()),
            bytes_down=len(active) * sum(v.nbytes for v in down.values()),
            gradients=gradients,
        )

    def _solve(self, problem: Problem, round: int, k: int) -> tuple[Solution, int]:
        random = generator(self.seed, "batches", round, k)
        work = Work(self.model, *self.population.samples(k), round, random, self.population.transform)
        self._layers.manual_seed(integer(self.seed, "layers", round, k))
        solution = self.solver(problem, work)
        if not isinstance(solution, Solution) or solution.theta.shape != problem.start.shape:
            found = type(solution).__name__
            raise InputError(f"the solver returned a {found}: return Solution(theta, path), theta of the model's size")
        theta = solution.theta.detach().to(problem.start, copy=True)  # a solver may return its workspace
        if not bool(theta.sum().isfinite()):
            raise DivergenceError(
                f"device {self.population.names[k]} diverged in round {round + 1} (its model is not finite); {HELP}"
            )
        return Solution(theta, solution.path), work.gradients


def add(total: State, up: State) -> None:
    """Add an upload to the sum of uploads."""
    for name, value in up.items():
        total[name] = total[name] + value if name in total else value


def _default_generator(device: torch.device) -> torch.Generator:
    """The generator that random layers (dropout) draw from."""
    if device.type != "cuda":
        return torch.default_generator
    return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
