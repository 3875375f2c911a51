"""The paper's synthetic table: its whole grid, all settings of the same length in one batched computation.

From the paper's appendix: 20 devices of about 200 samples, 10% participation, batches of 10, weight decay 1e-5,
learning rates 1 and .1, epochs 1, 10 and 50 (SCAFFOLD: K = 20, 200, 1000 steps), alpha .1, .01, .001, mu .01, .0001.
The best setting of each method counts. It does not print the number of rounds, nor its draw of the data, to which its
loss targets belong. So beside those there are two that do not depend on the draw: a fixed gap above the optimum.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import torch

from feddyn.algorithms import Algorithm, FedAvg, FedDyn, FedProx, Scaffold
from feddyn.data.datasets.synthetic import KINDS, Kind, synthetic
from feddyn.data.stored import Stored
from feddyn.engine.executors.pool import each
from feddyn.models.zoo import linear
from feddyn.paper.catalogue import COLUMNS
from feddyn.records.lines import count, figure, text
from feddyn.round.participation import Sampler
from feddyn.runs.optimum import optimum
from feddyn.search.lockstep import Group, Lockstep
from feddyn.solvers.sgd import SGD
from feddyn.solvers.work import total_steps

LRS = (1.0, 0.1)
EPOCHS = (1, 10, 50)
STEPS = (20, 200, 1000)
GRID_ALPHAS = (0.1, 0.01, 0.001)
MUS = (0.01, 0.0001)
BATCH = 10
WEIGHT_DECAY = 1e-5
PARTICIPATION = 0.1
ROUNDS = 500
GAPS = (0.02, 0.01)

FACTOR = {"scaffold": 2}
"""Models that a device transmits a round, where it is not one."""


@dataclass(frozen=True)
class Cell:
    """One setting of the grid; `parameter` is alpha or mu, and `length` epochs, or steps for SCAFFOLD."""

    method: str
    lr: float
    length: int
    parameter: float | None


@dataclass(frozen=True)
class GridBatch:
    """Settings on one draw in which each device takes the same number of steps, so that they can train together.

    `steps`, the sum over devices, says how long the job takes relative to others.
    """

    kind: Kind
    seed: int
    rounds: int
    steps: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Curve:
    """The objective of the `all` model after every round of one setting on one draw."""

    kind: Kind
    seed: int
    cell: Cell
    objectives: Sequence[float]

    def transmitted(self, target: float) -> int | None:
        """Models transmitted until the target was first reached; None: never."""
        reached = next((t for t, value in enumerate(self.objectives, 1) if value <= target), None)
        return None if reached is None else reached * FACTOR.get(self.cell.method, 1)

    def as_line(self) -> dict[str, Any]:
        """The curve as a line of a file; NaN becomes null. Nine digits tell all float32 numbers apart."""
        values = [float(f"{value:.9g}") if math.isfinite(value) else None for value in self.objectives]
        return {"kind": self.kind, "seed": self.seed, **asdict(self.cell), "objectives": values}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> "Curve":
        """The same again."""
        kind, values, parameter = line.get("kind"), line.get("objectives"), line.get("parameter")
        if kind not in KINDS or not isinstance(values, list):
            raise ValueError("it has no kind of data, or no list of objectives")
        objectives = [math.nan if value is None else figure({"objective": value}, "objective") for value in values]
        parameter = None if parameter is None else figure(line, "parameter")
        cell = Cell(text(line, "method"), figure(line, "lr"), count(line, "length"), parameter)
        return cls(kind, count(line, "seed"), cell, objectives)


def grid() -> list[Cell]:
    """All 42 settings."""
    parameters: dict[str, tuple[float | None, ...]] = {"feddyn": GRID_ALPHAS, "fedprox": MUS}
    return [
        Cell(method, lr, length, parameter)
        for method in COLUMNS
        for length in (STEPS if method == "scaffold" else EPOCHS)
        for lr, parameter in product(LRS, parameters.get(method, (None,)))
    ]


def jobs(seeds: Sequence[int], rounds: int = ROUNDS, kinds: Sequence[Kind] = KINDS) -> list[GridBatch]:
    """The grid on every draw, cut into settings of equal length; the longest jobs first."""
    found = []
    for kind, seed in product(kinds, seeds):
        sizes = synthetic(kind, seed=seed).sizes
        alike: dict[tuple[int, ...], list[Cell]] = {}
        for cell in grid():
            alike.setdefault(tuple(total_steps(n, *_length(cell), BATCH) for n in sizes), []).append(cell)
        found += [GridBatch(kind, seed, rounds, sum(steps), tuple(cells)) for steps, cells in alike.items()]
    return sorted(found, key=lambda job: -job.steps)


def run(todo: Sequence[GridBatch], workers: int) -> Generator[tuple[GridBatch, list[Curve]], None, None]:
    """Each job with its curves, as the jobs finish, in so many processes of one thread each."""
    return each(train, todo, workers)


def train(job: GridBatch) -> list[Curve]:
    """Run all settings of a job in step."""
    population = synthetic(job.kind, seed=job.seed)
    groups = []
    for method in COLUMNS:
        members = [cell for cell in job.cells if cell.method == method]
        if members:
            groups.append(Group(_algorithm(method, members), len(members)))
    lrs = torch.tensor([cell.lr for cell in job.cells])[:, None, None]
    epochs, steps = _length(job.cells[0])
    solver = SGD(lrs, epochs=epochs, steps=steps, batch_size=BATCH, weight_decay=WEIGHT_DECAY)
    sweep = Lockstep(linear(30, 5), population, groups, solver, seed=job.seed)
    sampler = Sampler(PARTICIPATION, population.devices, job.rounds, job.seed)
    values = torch.empty(job.rounds, len(job.cells))
    for t in range(job.rounds):
        sweep.step(t, sampler.active(t))
        values[t] = sweep.figures()["objective"]
    return [
        Curve(job.kind, job.seed, cell, column.tolist())
        for cell, column in zip(job.cells, values.unbind(1), strict=True)
    ]


def best(kind: Kind, seed: int) -> float:
    """The optimum of a draw's objective."""
    population: Stored = synthetic(kind, seed=seed)
    return optimum(linear(30, 5), population, WEIGHT_DECAY)


def _length(cell: Cell) -> tuple[int | None, int | None]:
    """(epochs, steps) of a setting."""
    return (None, cell.length) if cell.method == "scaffold" else (cell.length, None)


def _algorithm(method: str, cells: Sequence[Cell]) -> Algorithm:
    """A method with a column of its hyperparameters."""
    column = torch.tensor([cell.parameter or 0.0 for cell in cells])[:, None, None]
    if method == "feddyn":
        return FedDyn(column)
    if method == "fedprox":
        return FedProx(column)
    return Scaffold() if method == "scaffold" else FedAvg()
