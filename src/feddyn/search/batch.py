"""Candidates of a search as one batched computation, where they differ only in what can be stacked: the method, its
numbers and those of the solver, such as the learning rate."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, TypeAlias

import torch

from feddyn.algorithms import Algorithm
from feddyn.algorithms.base import Scalar
from feddyn.data.stored import Stored
from feddyn.records.layout import Line, Status
from feddyn.round.confined import confined
from feddyn.runs.plan import Plan
from feddyn.runs.simulation import exploded
from feddyn.search.lockstep import Group, Lockstep
from feddyn.search.space import Candidate
from feddyn.solvers.base import Batchable
from feddyn.solvers.stepwise import Stepwise
from feddyn.solvers.work import total_steps

LARGEST = 64
"""Candidates in a batch: more of them do not fit into a processor's cache."""
Planned: TypeAlias = tuple[Candidate, Plan]


class Batch(NamedTuple):
    """Candidates that train in step, those of one method next to each other."""

    members: Sequence[Planned]

    def histories(self) -> list[tuple[list[Line], Status]]:
        """A line a round for each member, until all have reached their target, diverged or completed their rounds; and
        which of these it was."""
        plan = self.members[0][1]
        assert isinstance(plan.population, Stored)
        solvers = [s for _, other in self.members if isinstance(s := other.local_solver, Batchable)]
        like = next(plan.model.parameters())
        runs: dict[str, list[Algorithm]] = {}
        for _, other in self.members:
            runs.setdefault(_kind(other.algorithm), []).append(other.algorithm)
        groups = [Group(_columns(algorithms, like), len(algorithms)) for algorithms in runs.values()]
        numbers = {name: _column([solver.numbers[name] for solver in solvers], like) for name in solvers[0].numbers}
        sweep = Lockstep(
            plan.model,
            plan.population,
            groups,
            solvers[0].with_numbers(numbers),
            seed=plan.seed,
            loss=plan.loss,
            metrics=plan.evaluation.metrics,
        )
        histories: list[list[Line]] = [[] for _ in self.members]
        status = [Status.FINISHED] * len(self.members)
        start = float(sweep.figures()["loss"][0])
        sampler, open_ = plan.sampler(), set(range(len(self.members)))
        with confined(like.device):  # tensors are small: more threads would only wait for each other
            for t in range(plan.rounds):
                sweep.step(t, sampler.active(t))
                figures = {name: values.tolist() for name, values in sweep.figures().items()}
                sent = [count for g, count in zip(groups, sweep.models_a_round, strict=True) for _ in range(g.settings)]
                for i in sorted(open_):
                    models = {"all": {name: values[i] for name, values in figures.items()}}
                    if exploded(models["all"]["loss"], start):
                        status[i] = Status.DIVERGED
                        open_.discard(i)
                        continue
                    histories[i].append({"round": t + 1, "transmitted": (t + 1) * sent[i], "models": models})
                    target = self.members[i][1].target
                    if target and target.reached(models, plan.evaluation.directions):
                        status[i] = Status.REACHED
                        if target.stop:
                            open_.discard(i)
                if not open_:
                    break
        return list(zip(histories, status, strict=True))


def batches(planned: Sequence[Planned]) -> tuple[list[Batch], list[Planned]]:
    """The candidates that can train in batches, and the rest."""
    alike: dict[str, list[Planned]] = {}
    rest = []
    for candidate, plan in planned:
        solver = plan.local_solver
        if isinstance(solver, Batchable) and _can(plan) and not candidate.of_wires:
            setting = plan.setting()
            shared = {key: value for key, value in setting.items() if key not in ("algorithm", "target")}
            shared["solver"] = {key: value for key, value in setting["solver"].items() if key not in solver.numbers}
            if isinstance(solver, Stepwise):  # epochs and steps that are as long on every device walk alike
                length = shared["solver"].pop("epochs", None), shared["solver"].pop("steps", None)
                sizes = plan.population.sizes_of(range(plan.population.devices)).tolist()
                shared["walk"] = [total_steps(size, *length, solver.batch_size) for size in sizes]
            alike.setdefault(json.dumps(shared, sort_keys=True), []).append((candidate, plan))
        else:
            rest.append((candidate, plan))
    found = []
    for members in alike.values():
        if len(members) == 1:
            rest += members
            continue
        kinds = list(dict.fromkeys(_kind(plan.algorithm) for _, plan in members))
        ordered = sorted(members, key=lambda member: kinds.index(_kind(member[1].algorithm)))
        found += [Batch(ordered[i : i + LARGEST]) for i in range(0, len(ordered), LARGEST)]
    return found, rest


def _can(plan: Plan) -> bool:
    """Whether a run is one that the engine batches over devices; then, with a method of ours, it can be batched over
    settings too."""
    stored = isinstance(plan.population, Stored) and plan.population.transform is None
    simple = plan.links is None and plan.patience is None and plan.uplink is None and plan.downlink is None
    simple = simple and plan.evaluation.every == 1 and not plan.evaluation.devices
    walked = plan.local_solver.reports_path or not plan.algorithm.needs_path
    counted = "all" in plan.evaluation.models and (plan.target is None or plan.target.model == "all")
    ours = type(plan.algorithm).__module__.startswith("feddyn.")  # others need not take columns of numbers
    return ours and stored and simple and walked and counted and plan.stack_size > 1


def _kind(algorithm: Algorithm) -> str:
    """What must be the same for algorithms to be stacked: the class, and parameters that are not numbers."""
    words = [f"{name}={value}" for name, value in _parameters(algorithm) if not isinstance(value, int | float)]
    return " ".join([type(algorithm).__name__, *words])


def _parameters(algorithm: Algorithm) -> Iterator[tuple[str, Any]]:
    return ((f.name, getattr(algorithm, f.name)) for f in fields(algorithm))  # type: ignore[arg-type]


def _columns(algorithms: Sequence[Algorithm], like: torch.Tensor) -> Algorithm:
    """One algorithm whose numbers are columns, a row for each of several."""
    names = [name for name, value in _parameters(algorithms[0]) if isinstance(value, int | float)]
    columns = {name: _column([getattr(algorithm, name) for algorithm in algorithms], like) for name in names}
    return replace(algorithms[0], **columns)  # type: ignore[type-var]


def _column(values: Sequence[Scalar], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None, None]
