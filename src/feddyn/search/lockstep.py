"""Many settings at once: several methods with many hyperparameters each, on one population, as one batched computation.

Every method hands its devices a problem of the same form, so the problems of all settings are stacked and solved
together; what each method makes of the solutions is again its own affair. All settings share the schedule of active
devices and the batches, which are those of a single run with the same seed.
"""

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import torch
from torch import nn
from torch.func import vmap

from feddyn.algorithms.base import Algorithm, Problem, Solution, State, Vector, models_uploaded
from feddyn.batches import mapped
from feddyn.data.stored import Stored
from feddyn.errors import InputError
from feddyn.metrics import Metric, natural
from feddyn.models.flat import FlatModel, Loss
from feddyn.models.stacked import stacked
from feddyn.round.evaluation import finished
from feddyn.round.seeds import device_seeds
from feddyn.solvers.base import Batchable
from feddyn.solvers.stack import StackedWork


class Group(NamedTuple):
    """One method in several settings: its hyperparameters are columns of shape (settings, 1, 1)."""

    algorithm: Algorithm
    settings: int


class Lockstep:
    """Groups of settings that train in step; the solver's numbers (lr) are columns over all settings, group after
    group."""

    def __init__(
        self,
        module: nn.Module,
        population: Stored,
        groups: Sequence[Group],
        solver: Batchable,
        *,
        seed: int,
        loss: Loss = nn.functional.cross_entropy,
        metrics: Sequence[Metric] = (),
    ):
        if population.transform is not None:
            raise InputError("a sweep trains on the samples as they are: transform the data before")
        self.model = FlatModel(module, loss)
        self.population = population.to(self.model.theta.dtype, self.model.theta.device)
        self.groups, self.solver, self.seed, self.metrics = groups, solver, seed, metrics
        self._way = stacked(self.model)
        m, initial = population.devices, self.model.theta.clone()
        self.shares = torch.tensor([[population.share(k)] for k in range(m)], dtype=torch.float64).to(initial)
        self.servers = [g.algorithm.server(initial.repeat(g.settings, 1, 1)) for g in groups]
        self.devices = [g.algorithm.device(initial.repeat(g.settings, m, 1)) for g in groups]
        self.models_a_round = [models_uploaded(g.algorithm, initial) for g in groups]
        self.latest = [initial.repeat(g.settings, m, 1) for g in groups]

    def step(self, round: int, active: Sequence[int]) -> None:
        """Run one round, counted from 0, in all settings."""
        who = torch.tensor(active, device=self.shares.device)
        share = self.shares[who]
        downs = [g.algorithm.broadcast(server) for g, server in zip(self.groups, self.servers, strict=True)]
        states = [{name: value[:, who] for name, value in state.items()} for state in self.devices]
        problems = [
            g.algorithm.problem(down, state, share) for g, down, state in zip(self.groups, downs, states, strict=True)
        ]
        together = StackedWork(
            self.model,
            self._way,
            sum(g.settings for g in self.groups),
            self.population.rows(active),
            round,
            device_seeds(self.seed, "batches", round, active),
        )
        theta, path = self.solver(self._stack(problems, len(active)), together)
        assert path is None or isinstance(path, torch.Tensor)
        sizes = [g.settings for g in self.groups]
        paths = [None] * len(sizes) if path is None else path.expand(len(theta), -1, -1).split(sizes)
        for i, (g, found, walked) in enumerate(zip(self.groups, theta.split(sizes), paths, strict=True)):
            state, up = g.algorithm.report(downs[i], states[i], share, Solution(found, walked))
            total = {name: value.sum(-2, keepdim=True) for name, value in up.items()}
            self.servers[i] = g.algorithm.aggregate(self.servers[i], total, len(active), self.population.devices)
            self._commit(i, who, state, found)

    def all_means(self) -> Vector:
        """The weighted means of all devices' latest models, a row a setting."""
        means = []
        for g, latest in zip(self.groups, self.latest, strict=True):
            means.append((g.algorithm.weight(self.shares) * latest).mean(1))
        return torch.cat(means)

    @torch.no_grad()
    def figures(self) -> dict[str, torch.Tensor]:
        """The figures of the `all` models, on the test set where there is one, a number a setting each."""
        x, y = self.population.evaluated
        thetas = self.all_means()
        outputs = vmap(lambda theta: self.model.function(theta, x))(thetas)
        figures = {"loss": torch.as_tensor(vmap(lambda output: self.model.loss(output, y))(outputs))}
        each = [mapped(itemgetter(i), outputs) for i in range(len(thetas))]
        for metric in (*natural(each[0], y, self.model.loss), *self.metrics):
            values = [
                finished(metric, metric.batch(output, y), gaps=not math.isfinite(loss))
                for output, loss in zip(each, figures["loss"].tolist(), strict=True)
            ]
            figures[metric.name] = torch.tensor(values, dtype=torch.float64)
        if self.population.test is None:
            figures["objective"] = figures["loss"] + self.solver.weight_decay / 2 * thetas.square().sum(1)
        return figures

    def _stack(self, problems: Sequence[Problem], devices: int) -> Problem:
        """One problem over all settings; a method without a tilt or a penalty has zeros there."""
        starts, tilts, proxes, centers = [], [], [], []
        for g, problem in zip(self.groups, problems, strict=True):
            shape = (g.settings, devices, self.model.size)
            zero = problem.start.new_zeros(())
            starts.append(problem.start.expand(shape))
            tilts.append((zero if problem.tilt is None else problem.tilt).expand(shape))
            proxes.append(
                torch.as_tensor(problem.prox, dtype=zero.dtype, device=zero.device).expand(g.settings, devices, 1)
            )
            centers.append((zero if problem.center is None else problem.center).expand(shape))
        return Problem(*map(torch.cat, (starts, tilts, proxes, centers)))

    def _commit(self, group: int, who: torch.Tensor, state: State, found: Vector) -> None:
        for name, value in state.items():
            self.devices[group][name][:, who] = value
        self.latest[group][:, who] = found
