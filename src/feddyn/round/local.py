"""A device at work: its problem, solved on its own samples. Devices can be solved in stacks, and models in closed form
are computed that way even alone, so that a device gets the same bits wherever it works."""

from collections.abc import Sequence

import torch

from feddyn.algorithms.base import Algorithm, Problem, Solution
from feddyn.data.population import Population
from feddyn.data.transforms import Images, Tokens
from feddyn.errors import InputError
from feddyn.models.flat import FlatModel
from feddyn.models.stacked import MakeStacked, linear_layers, stacked
from feddyn.round.seeds import device_seeds, integer
from feddyn.solvers.base import Batchable, Solver
from feddyn.solvers.stack import StackedWork
from feddyn.solvers.work import Work


class Local:
    """Solves the problems of a population's devices, in stacks of up to `stack` or, where that is 1, one by one."""

    def __init__(self, model: FlatModel, population: Population, solver: Solver, seed: int, stack: int):
        self.model, self.population, self.solver, self.seed = model, population, solver, seed
        self._stacked = _stacking(stack, model, population, solver)
        self._layers = _default_generator(model.theta.device)

    @property
    def in_stacks(self) -> bool:
        """Whether problems and solutions have a leading axis of devices."""
        return self._stacked is not None

    def solve(
        self,
        problem: Problem,
        round: int,
        devices: Sequence[int],
        numbers: Sequence[int] = (),
        effort: Sequence[float] = (),
    ) -> tuple[Solution, int]:
        """What some devices find in a round, counted from 0, and how many gradients of samples it took. Their seeds are
        those of the devices called `numbers` (empty: their own), and `effort` is the part of its steps that each gets
        done (empty: all)."""
        numbers, effort = numbers or devices, effort or [1.0] * len(devices)
        seeds = device_seeds(self.seed, "batches", round, numbers)
        transform = self.population.transform
        if self._stacked is not None:
            assert isinstance(self.solver, Batchable)
            rows = self.population.rows(devices)
            together = StackedWork(self.model, self._stacked, 1, rows, round, seeds, transform, effort)
            theta, path = self.solver(problem, together)
            return Solution(theta[0], path), together.gradients
        (k,) = devices
        work = Work(self.model, *self.population.samples(k), round, int(seeds[0]), transform, effort[0])
        self._layers.manual_seed(integer(self.seed, "layers", round, numbers[0]))
        versions = _versions(problem)
        solution = self.solver(problem, work)
        if versions != _versions(problem):
            raise InputError("the solver changed its problem in place: start from problem.start.clone()")
        if not isinstance(solution, Solution) or solution.theta.shape != problem.start.shape:
            found = type(solution).__name__
            raise InputError(f"the solver returned a {found}: return Solution(theta, path), theta of the model's size")
        return Solution(solution.theta.detach().to(problem.start), solution.path), work.gradients


def augmented(population: Population) -> bool:
    """Whether the transform may be random: only those known not to be are not."""
    transform = population.transform
    plain = transform is None or isinstance(transform, Tokens)
    return not plain and not (isinstance(transform, Images) and not transform.augment)


def _stacking(stack: int, model: FlatModel, population: Population, solver: Solver) -> MakeStacked | None:
    """How stacks of devices are computed; None: devices train one by one with autograd."""
    x, y = population.excerpt()
    classes = not y.is_floating_point() and y.dim() == 1
    suited = isinstance(solver, Batchable) and not augmented(population)
    closed = linear_layers(model) is not None and classes and suited and isinstance(x, torch.Tensor)
    return stacked(model) if stack > 1 or closed else None


def _versions(problem: Problem) -> list[int]:
    """Numbers that change when a problem's vectors do: they are the server's and the device's own."""
    vectors = (problem.start, problem.tilt, problem.center)
    return [vector._version for vector in vectors if vector is not None]


def _default_generator(device: torch.device) -> torch.Generator:
    """The generator that random layers (dropout) draw from."""
    if device.type != "cuda":
        return torch.default_generator
    return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]


def advice(algorithm: Algorithm, solver: Solver) -> str:
    """What to try where training diverges, by what the method and the solver say of themselves."""
    return f"what usually helps: {' or '.join(filter(None, (solver.remedy, algorithm.remedy)))}"
