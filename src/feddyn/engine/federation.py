"""One round: broadcast, every active device solves its problem, the uploads are added up, the server moves."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import nn

from feddyn.algorithms.base import Algorithm, State, Vector, models_uploaded
from feddyn.data.population import Population
from feddyn.engine.assignment import Assignment, assign
from feddyn.engine.cost import cost
from feddyn.engine.executors.base import Chunk, Executor
from feddyn.engine.executors.forked import executor
from feddyn.engine.executors.group import Group
from feddyn.engine.executors.inline import Inline
from feddyn.engine.links import Answers
from feddyn.engine.memory import quarter_of_memory
from feddyn.engine.shield import shielded
from feddyn.engine.store import Store
from feddyn.engine.trainer import LATEST, Effort, Trainer, own_state
from feddyn.engine.wires import COMMON, Crossed, Wires
from feddyn.errors import FeddynError, InputError
from feddyn.metrics import Evaluation, Figures
from feddyn.models.flat import FlatModel, Loss
from feddyn.round.cost import Cost
from feddyn.round.evaluation import Evaluator
from feddyn.round.rehearsal import require_whole_state, try_method, try_out
from feddyn.round.sums import zeros
from feddyn.solvers.base import Solver
from feddyn.wire.base import Compressor
from feddyn.wire.downlink import carried


class Federation:
    """The server and its devices between rounds; `rounds` were completed and cost `totals`.

    Of the devices that were ever active, the store has the states and, where the mean of all devices is asked for,
    the latest models; all others have the initial ones. `stack` is how many devices train together at most, `group`
    the processes that share the work.
    """

    def __init__(
        self,
        model: nn.Module,
        population: Population,
        algorithm: Algorithm,
        solver: Solver,
        *,
        loss: Loss,
        seed: int,
        stack: int,
        evaluation: Evaluation,
        group: Group,
        state_memory: int | None = None,
        uplink: Compressor | None = None,
        downlink: Compressor | None = None,
    ):
        self.algorithm, self.solver, self.group = algorithm, solver, group
        self._stack, self._devices = stack, evaluation.devices
        self._evaluated = [str(name) for name in evaluation.models]
        self.model = FlatModel(model, loss)
        self.population = population.to(self.model.theta.dtype, self.model.theta.device)
        try_out(self.model, self.population)
        self.initial = self.model.theta.clone()
        try_method(algorithm, self.initial, population.devices)
        self.server = algorithm.server(self.initial)
        self._check_solver()
        self.trainer = Trainer(
            self.model,
            self.population,
            algorithm,
            solver,
            seed=seed,
            stack=stack,
            state_memory=quarter_of_memory() if state_memory is None else state_memory,
            track_all="all" in evaluation.models,
            uplink=uplink,
        )
        self.wires = Wires(
            algorithm,
            self.initial,
            self.trainer.upload,
            compressed=uplink is not None,
            downlink=downlink,
            sizes=self.model.sizes,
            devices=population.devices,
            seed=seed,
        )
        self._models_sent = 1 if uplink else models_uploaded(algorithm, self.initial)
        self.evaluator = Evaluator(self.model, self.population, solver.weight_decay, evaluation.metrics)
        self.active_mean = self.initial
        self._norms = torch.zeros(len(self.trainer.norms), dtype=torch.float64)
        self.rounds, self.totals = 0, Cost()
        # the sum over all devices, kept up as they change; exact, so that thousands of rounds do not add up errors
        self._all_total = zeros(self.model.size, self.initial.device)
        self.trainer.sums.add(self._all_total, self.initial)
        self._all_total *= self.population.devices
        self._executor: Executor = Inline(self.trainer, self.evaluator)

    def start(self, workers: int | None, private: Sequence[int] = ()) -> None:
        """Get helpers, which close `private` handles; until then, and after `close`, this process does everything."""
        if self.group.size > 1 and workers is None:
            workers = 1  # there are other ranks for the other cores
        self._executor = executor(self.trainer, self.evaluator, workers, len(self._evaluated), private)

    def close(self) -> None:
        """Let the helpers go."""
        self._executor.close()
        self._executor = Inline(self.trainer, self.evaluator)

    @property
    def store(self) -> Store:
        """What is kept of the devices between rounds."""
        return self.trainer.store

    def _check_solver(self) -> None:
        """Refuse a solver that cannot solve this method's problems before any work is done."""
        algorithm, solver = self.algorithm, self.solver
        if algorithm.needs_path and not solver.reports_path:
            name = f"{type(algorithm).__name__} with {solver.name}"
            raise InputError(f"{name}: the method needs a solver that walks in steps and reports its path, such as SGD")
        down, device = algorithm.broadcast(self.server), algorithm.device(self.initial)
        solver.check(algorithm.problem(down, device, self.population.share(0)))

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
        kept = self.store.state(device)
        return {name: vector.clone() for name, vector in own_state(kept).items()}

    def latest(self, device: int) -> Vector:
        """A device's latest model."""
        return self.store.state(device)[LATEST].clone()

    def vectors(self) -> dict[str, Vector]:
        """All that the next round depends on, besides the devices' states."""
        server = {f"server.{name}": vector for name, vector in self.server.items()}
        own = {"active": self.active_mean, "all": self._all_total, "norms": self._norms}
        return {**server, **own, **self.wires.vectors()}

    def restore(self, rounds: int, totals: Sequence[int], vectors: Mapping[str, Vector]) -> None:
        """Go back to where `vectors` were taken."""
        where, now = self.initial.device, self.vectors()
        vectors = {"norms": self._norms, **vectors}
        fixed = {name: like for name, like in now.items() if not name.startswith(COMMON)}
        other = [name for name, like in fixed.items() if name not in vectors or not _alike(vectors[name], like)]
        if len(totals) != len(Cost._fields) or other:
            what = f"its vector {other[0]} is of another shape or type" if other else "its counts cannot be"
            raise FeddynError(f"the checkpoint of round {rounds} is not one of this run ({what}): start the run again")
        self.rounds, self.totals = rounds, Cost(*totals)
        self.server = {name: vectors[f"server.{name}"].to(where) for name in self.server}
        self.active_mean, self._all_total = vectors["active"].to(where), vectors["all"].to(where)
        self._norms = vectors["norms"]
        self.wires.restore(rounds, vectors)
        self.__dict__.pop("models", None)

    @property
    def device_norms(self) -> Figures:
        """Means over the devices that were active last: the distance `drift` between what they found and what they were
        sent, and the norms of their states."""
        return dict(zip(self.trainer.norms, self._norms.tolist(), strict=True))

    @property
    def broadcast_norms(self) -> Figures:
        """Of the last broadcast, where it was compressed: the lengths of what was `sent` and of what was `unsent`."""
        return self.wires.norms

    @property
    def ever_active(self) -> list[int]:
        """The devices that were active at any time, in order."""
        return sorted(self.store.slots)

    def step(self, round: int, answers: Answers) -> None:
        """Run one round, counted from 0; where a device diverges or the run is interrupted, nothing of it is kept.

        Devices whose upload is not counted are not trained: nobody would learn what they find, nor would they keep it.
        """
        sent = self.wires.send(round, self.server)
        down = self.wires.downloads(sent, answers)
        if not answers.counted:
            up, quiet = self.wires.uploads(answers, 0), torch.zeros_like(self._norms)
            outcome = (self.server, self.active_mean, self._all_total, quiet)
            self._complete(round, cost(self._models_sent, down, up, 0), Crossed(sent, answers, up), *outcome)
            return
        work = assign(round, answers, self.population, self.store, self.group, self._stack)
        try:
            total, effort = self.group.guarded(lambda: self._executor.train(work.tasks, sent.down))
            total, effort = self.group.total(total), Effort(*self.group.total(torch.tensor(effort)).tolist())
            layout, model_sum = self.trainer.layout, self.trainer.model_sum

            def summed(name: str) -> Vector:
                return self.trainer.sums.value(total[:, layout[name]]).to(self.initial.dtype)

            uploads = {name: summed(f"up.{name}") for name in self.trainer.upload}
            count = len(answers.counted)
            server = self.algorithm.aggregate(sent.server, uploads, count, self.population.devices)
            server = carried(self.algorithm, sent, server)
            require_whole_state(self.algorithm, self.server, server)
            active_mean = summed(model_sum) / summed("weight")[0]
            norms = self.trainer.sums.value(total[:, layout["weight"]])[1:].cpu() / count
            all_total = self._all_total
            if self.trainer.track_all:
                all_total = all_total + total[:, layout[model_sum]] - total[:, layout["before"]]
        except BaseException:
            self.store.release(slot for task in work.tasks for slot in task.new)
            raise
        finally:
            self.store.release(work.arrived)
        up = self.wires.uploads(answers, effort.sent)
        spent = cost(self._models_sent, down, up, effort.gradients)
        self._complete(round, spent, Crossed(sent, answers, up), server, active_mean, all_total, norms, work)

    def _complete(
        self,
        round: int,
        spent: Cost,
        crossed: Crossed,
        server: State,
        active_mean: Vector,
        all_total: torch.Tensor,
        norms: torch.Tensor,
        work: Assignment | None = None,
    ) -> None:
        """Make a round's outcome the state of things, all of it or nothing."""
        with shielded():
            self.rounds, self.totals = round + 1, self.totals.plus(spent)
            self.server, self.active_mean, self._all_total, self._norms = server, active_mean, all_total, norms
            self.__dict__.pop("models", None)  # they are other ones now
            self.wires.commit(crossed)
            if work is None:
                return
            for task in work.tasks:
                self.store.commit(task.devices, task.new)
            self.group.note_owners(self.store, work.groups, work.owners)

    def evaluate(self) -> dict[str, Figures]:
        """The figures of the models that are asked for; equal ones are evaluated once."""
        models = {name: self.models[name] for name in self._evaluated}
        first: dict[str, str] = {}
        for name, theta in models.items():
            first[name] = next((other for other in first if torch.equal(models[other], theta)), name)
        distinct = [name for name in models if first[name] == name]
        chunks = [(i, j) for i in range(len(distinct)) for j in range(self.evaluator.chunks)]
        rows = self._sums([models[name] for name in distinct], chunks).view(len(distinct), -1, self.evaluator.width)
        pairs = zip(distinct, rows.tolist(), strict=True)
        figures = {name: self.evaluator.figures(models[name], parts) for name, parts in pairs}
        return {name: figures[first[name]] for name in models}

    def evaluate_devices(self) -> dict[str, list[float]] | None:
        """The figures of the server's model on each device's own samples, a column a metric, with NaN where a device
        has none; None: not asked for."""
        if not self._devices:
            return None
        theta, devices = self.server["theta"], self.population.devices
        parts = self._sums([theta], [(0, self.evaluator.chunks + k) for k in range(devices)]).tolist()
        figures = [self.evaluator.figures(theta, [part], gaps=True) for part in parts]
        return {name: [row[name] for row in figures] for name in self.evaluator.names}

    @cached_property
    def census(self) -> dict[str, list[Any]]:
        """The name and the number of samples of every device."""
        devices = range(self.population.devices)
        sizes = self.population.sizes_of(devices).tolist()
        return {"device": [self.population.name(k) for k in devices], "samples": sizes}

    def _sums(self, models: Sequence[Vector], chunks: Sequence[Chunk]) -> torch.Tensor:
        """The sums of chunks of samples, a row each, shared out over the processes."""
        here, step = self.group.rank, self.group.size
        sums = torch.zeros(len(chunks), self.evaluator.width, dtype=torch.float64)
        mine = self.group.guarded(lambda: self._executor.evaluate(models, chunks[here::step]))
        sums[here::step] = torch.tensor(mine, dtype=torch.float64).view(-1, self.evaluator.width)
        return self.group.total(sums)  # each adds zeros where another one has a figure


def _alike(one: Vector, other: Vector) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype
