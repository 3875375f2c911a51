"""One round: broadcast, every active device solves its problem, the uploads are added up, the server moves."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch

from feddyn.algorithms.base import State, Vector, models_uploaded
from feddyn.engine.evaluation import Evaluator, Figures, Part
from feddyn.engine.executors.forked import Alone, Crew, crew
from feddyn.engine.executors.ranks import Ranks
from feddyn.engine.grouping import cohorts
from feddyn.engine.links import Answers
from feddyn.engine.rehearsal import try_out
from feddyn.engine.shield import shielded
from feddyn.engine.sums import zeros
from feddyn.engine.trainer import LATEST, Task, Trainer
from feddyn.errors import InputError
from feddyn.models.flat import FlatModel
from feddyn.runs.plan import Plan


class Cost(NamedTuple):
    """What rounds cost: the models a device transmits relative to FedAvg, bytes, gradients of single samples, and bytes
    to and from devices whose upload was not counted."""

    models: int
    bytes_up: int
    bytes_down: int
    gradients: int
    wasted: int


class Shares(NamedTuple):
    """How a round is shared out: groups of devices and the rank that trains each, slots of states that came from other
    ranks, and the tasks of this one."""

    groups: list[list[int]]
    owners: list[int]
    arrived: list[int]
    tasks: list[Task]


class Federation:
    """The server and its devices between rounds; `rounds` were completed and cost `totals`.

    Of the devices that were ever active, the store has the states and, where the mean of all devices is asked for,
    the latest models; all others have the initial ones.
    """

    def __init__(self, plan: Plan, *, state_memory: int | None = None, ranks: Ranks | None = None):
        self.plan, self.algorithm, self.ranks = plan, plan.algorithm, ranks
        self._cohort = plan.cohort or 1  # a plan has always settled it
        self.model = FlatModel(plan.model, plan.loss)
        self.population = plan.population.to(self.model.theta.dtype, self.model.theta.device)
        try_out(self.model, self.population)
        self.initial = self.model.theta.clone()
        self.server = plan.algorithm.server(self.initial)
        self._check_solver()
        self.trainer = Trainer(
            self.model,
            self.population,
            plan.algorithm,
            plan.solver,
            seed=plan.seed,
            cohort=self._cohort,
            state_memory=_quarter_of_memory() if state_memory is None else state_memory,
            track_all="all" in plan.evaluation.models,
        )
        self._models = models_uploaded(plan.algorithm, self.initial)
        weight_decay = getattr(plan.solver, "weight_decay", 0.0)
        self.evaluator = Evaluator(self.model, self.population, weight_decay)
        self.active_mean = self.initial
        self._norms = torch.zeros(len(self.trainer.norms), dtype=torch.float64)
        self.rounds, self.totals = 0, Cost(0, 0, 0, 0, 0)
        # the sum over all devices, kept up as they change; exact, so that thousands of rounds do not add up errors
        self._all_total = zeros(self.model.size, self.initial.device)
        self.trainer.sums.add(self._all_total, self.initial)
        self._all_total *= self.population.devices
        self._crew: Crew = Alone(self.trainer, self.evaluator)

    def start(self, workers: int | None, private: Sequence[int] = ()) -> None:
        """Get helpers, which close `private` handles; until then, and after `close`, this process does everything."""
        if self.ranks and workers is None:
            workers = 1  # there are other ranks for the other cores
        models = len(self.plan.evaluation.models)
        self._crew = crew(self.trainer, self.evaluator, workers, models, private)

    def close(self) -> None:
        """Let the helpers go."""
        self._crew.close()
        self._crew = Alone(self.trainer, self.evaluator)

    def _check_solver(self) -> None:
        """Refuse a solver that cannot solve this method's problems before any work is done."""
        algorithm, solver = self.algorithm, self.plan.solver
        if algorithm.needs_path and not getattr(solver, "walks", True):
            name = f"{type(algorithm).__name__} with {type(solver).__name__}"
            raise InputError(f"{name}: the method needs a solver that walks in steps and reports its path, such as SGD")
        if check := getattr(solver, "check", None):
            down, device = algorithm.broadcast(self.server), algorithm.device(self.initial)
            check(algorithm.problem(down, device, self.population.share(0)))

    @cached_property
    def models(self) -> dict[str, Vector]:
        """The models that are reported: the server's, the mean of the active devices and, where it is asked for, the
        mean of all devices' latest models; a device that was never active has the initial one."""
        models = {"server": self.server["theta"], "active": self.active_mean}
        if self.trainer.track_all:
            mean = self.trainer.sums.value(self._all_total).div_(self.population.devices)
            models["all"] = mean.to(self.initial.dtype)
        return models

    def state(self, device: int) -> State:
        """A device's state; under ranks, only those of this rank's devices are up to date."""
        kept = self.trainer.store.state(device)
        return {name.removeprefix("state."): vector.clone() for name, vector in kept.items() if name != LATEST}

    def latest(self, device: int) -> Vector:
        """A device's latest model."""
        return self.trainer.store.state(device)[LATEST].clone()

    def vectors(self) -> dict[str, Vector]:
        """All that the next round depends on, besides the devices' states."""
        server = {f"server.{name}": vector for name, vector in self.server.items()}
        return {**server, "active": self.active_mean, "all": self._all_total, "norms": self._norms}

    def restore(self, rounds: int, totals: Sequence[int], vectors: Mapping[str, Vector]) -> None:
        """Go back to where `vectors` were taken."""
        where = self.initial.device
        self.rounds, self.totals = rounds, Cost(*totals)
        self.server = {name: vectors[f"server.{name}"].to(where) for name in self.server}
        self.active_mean, self._all_total = vectors["active"].to(where), vectors["all"].to(where)
        self._norms = vectors.get("norms", self._norms)
        self.__dict__.pop("models", None)

    @property
    def device_norms(self) -> Figures:
        """Of the devices that were active last: the mean distance `drift` between what they found and what they were
        sent, and the mean norms of their states."""
        return dict(zip(self.trainer.norms, self._norms.tolist(), strict=True))

    @property
    def ever_active(self) -> list[int]:
        """The devices that the store has."""
        return sorted(self.trainer.store.slots)

    def step(self, round: int, answers: Answers) -> None:
        """Run one round, counted from 0; where a device diverges or the run is interrupted, nothing of it is kept.

        Devices whose upload is not counted are not trained: whatever they compute, nobody will know, nor they remember.
        """
        down = self.algorithm.broadcast(self.server)
        if not answers.counted:
            spent = self._cost(answers, down, 0)
            self._complete(round, spent, self.server, self.active_mean, self._all_total, torch.zeros_like(self._norms))
            return
        work = self._share_out(round, answers)
        try:
            total, gradients = self._sum(work.tasks, down)
            layout, model_sum = self.trainer.layout, self.trainer.model_sum

            def summed(name: str) -> Vector:
                return self.trainer.sums.value(total[:, layout[name]]).to(self.initial.dtype)

            uploads = {name: summed(f"up.{name}") for name in self.trainer.upload}
            count = len(answers.counted)
            server = self.algorithm.aggregate(self.server, uploads, count, self.population.devices)
            active_mean = summed(model_sum) / summed("weight")[0]
            norms = self.trainer.sums.value(total[:, layout["weight"]])[1:].cpu() / count
            all_total = self._all_total
            if self.trainer.track_all:
                all_total = all_total + total[:, layout[model_sum]] - total[:, layout["before"]]
        except BaseException:
            self.trainer.store.release(slot for task in work.tasks for slot in task.new)
            raise
        finally:
            self.trainer.store.release(work.arrived)
        self._complete(round, self._cost(answers, down, gradients), server, active_mean, all_total, norms, work)

    def _complete(
        self,
        round: int,
        spent: Cost,
        server: State,
        active_mean: Vector,
        all_total: torch.Tensor,
        norms: torch.Tensor,
        work: Shares | None = None,
    ) -> None:
        """Make a round's outcome the state of things, all of it or nothing."""
        with shielded():
            self.rounds, self.totals = round + 1, Cost(*(a + b for a, b in zip(self.totals, spent, strict=True)))
            self.server, self.active_mean, self._all_total, self._norms = server, active_mean, all_total, norms
            self.__dict__.pop("models", None)  # they are other ones now
            if work is None:
                return
            for task in work.tasks:
                self.trainer.store.commit(task.devices, task.new)
            if self.ranks:
                self.ranks.settle(self.trainer.store, work.groups, work.owners)

    def _cost(self, answers: Answers, down: State, gradients: int) -> Cost:
        up = sum(v.nbytes for v in self.trainer.upload.values())
        in_vain, counted = len(answers.lost) + len(answers.late), len(answers.counted)
        return Cost(
            models=self._models,
            bytes_up=(counted + in_vain) * up,
            bytes_down=(counted + in_vain) * sum(v.nbytes for v in down.values()),
            gradients=gradients,
            wasted=in_vain * (up + sum(v.nbytes for v in down.values())),
        )

    def _share_out(self, round: int, answers: Answers) -> Shares:
        """Who trains whom: this process's tasks, and under ranks also whose devices the others are."""
        active, store = answers.counted, self.trainer.store
        sizes = self.population.sizes_of(active).tolist()
        size, effort = (dict(zip(active, values, strict=True)) for values in (sizes, answers.effort))
        groups = cohorts(active, sizes, self._cohort)
        owners, arrived = [0] * len(groups), dict[int, int]()
        if self.ranks:
            owners = self.ranks.assign(groups, [sum(size[k] for k in group) for group in groups])
            arrived = self.ranks.fetch(store, groups, owners)
        here = self.ranks.rank if self.ranks else 0
        tasks = [
            Task(
                number,
                round,
                group,
                [arrived.get(k, store.slots.get(k)) for k in group],
                store.stage(group),
                [effort[k] for k in group],
            )
            for number, (group, owner) in enumerate(zip(groups, owners, strict=True))
            if owner == here
        ]
        return Shares(groups, owners, list(arrived.values()), tasks)

    def _sum(self, tasks: Sequence[Task], down: State) -> tuple[torch.Tensor, int]:
        if self.ranks is None:
            return self._crew.train(tasks, down)
        total, gradients = self.ranks.guarded(lambda: self._crew.train(tasks, down))
        return self.ranks.total(total), int(self.ranks.total(torch.tensor(gradients)))

    def evaluate(self) -> dict[str, Figures]:
        """The figures of the models that the plan asks for; equal ones are evaluated once."""
        models = {str(name): self.models[name] for name in self.plan.evaluation.models}
        first: dict[str, str] = {}
        for name, theta in models.items():
            first[name] = next((other for other in first if torch.equal(models[other], theta)), name)
        distinct = [name for name in models if first[name] == name]
        chunks = [(i, j) for i in range(len(distinct)) for j in range(self.evaluator.chunks)]
        here, step = (self.ranks.rank, self.ranks.size) if self.ranks else (0, 1)
        parts = torch.zeros(len(chunks), 2, dtype=torch.float64)

        def work() -> list[Part]:
            return self._crew.evaluate([models[name] for name in distinct], chunks[here::step])

        mine = self.ranks.guarded(work) if self.ranks else work()
        parts[here::step] = torch.tensor(mine, dtype=torch.float64).view(-1, 2)
        if self.ranks:
            self.ranks.total(parts)  # each rank adds zeros where another one has a figure
        rows = parts.view(len(distinct), -1, 2).tolist()
        figures = {name: self.evaluator.figures(models[name], part) for name, part in zip(distinct, rows, strict=True)}
        return {name: figures[first[name]] for name in models}


def _quarter_of_memory() -> int:
    """Of the machine, or of what a container may have of it, shared with the other ranks on it."""
    limit = 8 << 30  # where the system does not tell
    with suppress(AttributeError, OSError, ValueError):
        limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        limit = min(limit, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return limit // 4 // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
