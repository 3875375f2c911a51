"""SGD with momentum and AdamW, step by step against torch.optim, alone and stacked, and in the engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.algorithms.base import Problem
from feddyn.data.population import Rows
from feddyn.data.stored import Stored
from feddyn.identity import table
from feddyn.models.flat import FlatModel
from feddyn.models.stacked import stacked
from feddyn.settings.building import plans
from feddyn.solvers import Step, Work
from feddyn.solvers.penalty import Penalty
from feddyn.solvers.stack import StackedWork
from feddyn.solvers.stepwise import Stepwise

SIZES = [12, 5, 21]
ROUND = 5
BASIC: dict[str, Any] = {"lr": 0.1, "batch_size": 4, "lr_decay": 0.9, "halve_every": 4}
RATE = 0.1 * 0.9**5 / 2
SOLVERS: list[Any] = [
    pytest.param(feddyn.SGD, {"momentum": 0.9}, id="heavy ball"),
    pytest.param(feddyn.SGD, {"momentum": 0.0}, id="sgd"),
    pytest.param(feddyn.AdamW, {}, id="adamw"),
    pytest.param(feddyn.AdamW, {"betas": (0.7, 0.95), "eps": 1e-3}, id="adamw, other numbers"),
]
NETWORKS: list[Any] = [
    pytest.param(nn.Linear(6, 3), id="closed form"),
    pytest.param(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), id="vmap"),
]


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def samples(k: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.Generator().manual_seed(k)
    return normal(k, SIZES[k], 6), torch.randint(0, 3, (SIZES[k],), generator=labels)


def make_work(network: nn.Module, k: int) -> Work:
    return Work(FlatModel(network), *samples(k), ROUND, 5 + k)


def make_stack(network: nn.Module, settings: int = 1) -> StackedWork:
    model, (x, y) = FlatModel(network), (torch.cat(parts) for parts in zip(*map(samples, range(3)), strict=True))
    starts = np.cumsum([0, *SIZES[:-1]])
    rows = Rows(x, y, starts, np.array(SIZES))
    return StackedWork(model, stacked(model), settings, rows, ROUND, np.arange(5, 8, dtype=np.uint64))


def make_problem(d: int) -> feddyn.Problem:
    """Problems of three devices, with all that a method may ask for."""
    return feddyn.Problem(normal(1, d), normal(2, 3, d), torch.tensor([[0.3], [1.0], [2.0]]).double(), normal(3, d))


def single(problem: feddyn.Problem, k: int) -> feddyn.Problem:
    assert isinstance(problem.prox, torch.Tensor)
    assert problem.tilt is not None
    assert problem.center is not None
    return feddyn.Problem(problem.start, problem.tilt[k], float(problem.prox[k]), problem.center)


def by_torch(solver: Stepwise, rate: float, problem: feddyn.Problem, work: Work) -> Iterator[torch.Tensor]:
    """theta after every step of torch's optimizer on the objective written out, the same batches, and its own clip."""
    theta = problem.start.clone().requires_grad_()
    optimizer: torch.optim.Optimizer
    if isinstance(solver, feddyn.AdamW):
        optimizer = torch.optim.AdamW([theta], rate, solver.betas, solver.eps, solver.weight_decay)
    else:
        assert isinstance(solver, feddyn.SGD)
        optimizer = torch.optim.SGD([theta], rate, solver.momentum, weight_decay=solver.weight_decay)
    assert problem.tilt is not None
    assert problem.center is not None
    for rows, _ in work.steps(solver.epochs, solver.steps, solver.batch_size):
        output = work.model.function(theta, work.x[rows])
        penalty = problem.tilt @ theta + problem.prox / 2 * (theta - problem.center).square().sum()
        (theta.grad,) = torch.autograd.grad(nn.functional.cross_entropy(output, work.y[rows]) + penalty, theta)
        if solver.clip is not None:
            theta.grad *= min(1.0, solver.clip / float(theta.grad.norm()))
        optimizer.step()
        yield theta.detach().clone()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(("kind", "own"), SOLVERS)
def test_a_device_takes_torchs_steps(
    network: nn.Module, kind: type[Stepwise], own: dict[str, Any], decay: float, clip: float | None
) -> None:
    """Every one of seven steps, two epochs and a batch; with a tilt, a penalty and the step size of round 5."""
    network = network.double()
    problem = single(make_problem(make_work(network, 0).theta.numel()), 0)
    solver = kind(**BASIC, steps=7, weight_decay=decay, clip=clip, **own)
    trajectory = list(by_torch(solver, RATE, problem, make_work(network, 0)))
    for count, theta in enumerate(trajectory, 1):
        shorter = kind(**BASIC, steps=count, weight_decay=decay, clip=clip, **own)
        found = shorter(problem, make_work(network, 0)).theta
        assert torch.allclose(found, theta, rtol=0, atol=1e-12)
    assert float((trajectory[0] - trajectory[-1]).norm()) > 0.01


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize(("kind", "own"), SOLVERS)
def test_stacked_devices_take_torchs_steps(
    network: nn.Module, kind: type[Stepwise], own: dict[str, Any], clip: float | None
) -> None:
    """Devices of 6, 4 and 12 steps in one stack, twice: with the step size, and with three times that, as a column."""
    network, lrs = network.double(), torch.tensor([0.1, 0.3], dtype=torch.float64)[:, None, None]
    problem = make_problem(make_work(network, 0).theta.numel())
    solver = kind(**BASIC, epochs=2, weight_decay=0.1, clip=clip, **own)
    found, path = solver.with_numbers({"lr": lrs})(problem, make_stack(network, 2))
    for i in range(2):
        for k in range(3):
            *_, theta = by_torch(solver, RATE * 3**i, single(problem, k), make_work(network, k))
            assert torch.allclose(found[i, k], theta, rtol=0, atol=1e-12)
            alone = kind(**BASIC | {"lr": 0.1 * 3**i}, epochs=2, weight_decay=0.1, clip=clip, **own)
            walked = alone(single(problem, k), make_work(network, k)).path
            assert (path is None) == (walked is None) == (not solver.reports_path)
            if path is not None and walked is not None:
                assert torch.as_tensor(path).expand(2, 3, 1)[i, k].item() == pytest.approx(float(walked), rel=1e-14)


@dataclass
class Slope:
    """A walk of devices whose gradient is the same everywhere; they take 2 and 5 steps."""

    theta: torch.Tensor
    slopes: torch.Tensor
    round: int = 0

    def steps(self, *_: int | None) -> Iterator[Step]:
        for i in range(5):
            yield Step(None, torch.tensor([[float(i < 2)], [1.0]]).double() if len(self.slopes) == 2 else None)

    def gradient(self, _: object) -> torch.Tensor:
        return self.slopes.clone()

    def sharp_gradient(self, _: object, radius: float) -> torch.Tensor:
        return self.slopes.clone()

    def descent(self, _: object) -> Any:
        return lambda step: self.theta.sub_(step * self.slopes)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_path_is_the_sum_of_the_gradients_factors(momentum: float) -> None:
    """In units of lr, v is 1, 1 + mu, 1 + mu + mu^2, ... on a slope of 1: after two steps the path is 2 + mu, after
    five it is 5 + 4 mu + 3 mu^2 + 2 mu^3 + mu^4; on a constant slope, (start - theta) / path is that slope."""
    paths = [2 + momentum, 5 + 4 * momentum + 3 * momentum**2 + 2 * momentum**3 + momentum**4]
    solver, start, slopes = feddyn.SGD(0.2, steps=5, momentum=momentum), normal(0, 4), normal(1, 2, 4)
    theta, path = solver(feddyn.Problem(start), Slope(torch.empty(2, 4).double(), slopes))
    assert isinstance(path, torch.Tensor)
    assert path.flatten().tolist() == pytest.approx([0.2 * each for each in paths], rel=1e-14)
    assert torch.allclose((start - theta) / path, slopes, rtol=0, atol=1e-13)
    theta, path = solver(feddyn.Problem(start), Slope(torch.empty(4).double(), slopes[0]))
    assert path == pytest.approx(0.2 * paths[1], rel=1e-14)
    scaffold = feddyn.Scaffold()
    down, device = scaffold.broadcast(scaffold.server(start)), scaffold.device(start)
    after, _ = scaffold.report(down, device, 0.5, feddyn.Solution(theta, path))
    assert torch.allclose(after["c"], slopes[0], rtol=0, atol=1e-13)


def test_the_decay_of_adamw_is_no_part_of_its_objective() -> None:
    """With full batches, once old gradients are forgotten, it rests where g is zero, and not at -decay * theta.

    Its last steps go to and fro by about lr, how far depends on the last bits: lr is so small that the bound has room.
    """
    work = make_work(nn.Linear(6, 3).double(), 2)
    start = torch.zeros_like(work.theta)
    problem = feddyn.Problem(start, prox=0.5, center=torch.ones_like(start))
    work.round = 0
    theta = feddyn.AdamW(0.002, steps=2000, weight_decay=0.3, betas=(0.9, 0.9))(problem, work).theta.clone()
    work.theta.copy_(theta)
    assert float(problem.penalised_slope(work.gradient(), theta).norm()) < 1e-3 * float((0.3 * theta).norm())


def test_feddyn_with_adamw_reaches_the_pooled_optimum(logistic: nn.Module, unbalanced: Stored) -> None:
    """And FedAvg stays where the devices' own optima pull it, as with any solver that solves well."""
    exact = feddyn.Exact(weight_decay=1e-8)
    best = feddyn.simulate(logistic, unbalanced.pooled(), feddyn.FedAvg(), exact, participation=1.0, rounds=1)
    least = best.history[-1]["models"]["server"]["loss"]
    gaps = []
    for method in (feddyn.FedDyn(1.0), feddyn.FedAvg()):
        adamw = feddyn.AdamW(0.05, epochs=30, lr_decay=0.9)
        run = feddyn.simulate(logistic, unbalanced, method, adamw, participation=1.0, rounds=40)
        gaps.append(run.history[-1]["models"]["server"]["loss"] - least)
    assert gaps[0] < 1e-4
    assert gaps[1] > 0.1


@pytest.mark.parametrize(
    "solver", [feddyn.SGD(0.1, epochs=2, batch_size=8, momentum=0.8), feddyn.AdamW(0.01, epochs=2, batch_size=8)]
)
def test_stacks_slow_devices_and_workers(logistic: nn.Module, unbalanced: Stored, solver: feddyn.Solver) -> None:
    arguments: dict[str, Any] = {"participation": 5, "rounds": 3, "links": feddyn.Links(slow=0.5)}
    runs = [
        feddyn.simulate(logistic, unbalanced, feddyn.FedDyn(0.1), solver, **arguments, stack=stack, workers=workers)
        for stack, workers in ((1, 1), (3, 1), (3, 2))
    ]
    assert torch.allclose(runs[0].models["server"], runs[1].models["server"], rtol=0, atol=1e-12)
    assert torch.equal(runs[1].models["server"], runs[2].models["server"])
    assert any(line["slow"] for line in runs[0].history)


@pytest.mark.parametrize("prox", [4.0, 0.0, -0.5])
@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("pulled", [True, False])
def test_the_penalty_is_that_of_the_problem(prox: float, decay: float, pulled: bool) -> None:
    """Also a negative one, which a method of one's own may ask for."""
    torch.manual_seed(0)
    theta, center, tilt = torch.randn(3, 5, dtype=torch.float64)
    problem = Problem(center, tilt if pulled else None, prox, center)
    slope = problem.penalised_slope(decay * theta, theta)
    penalty = Penalty(problem, decay, theta)
    assert torch.allclose(penalty.add_slope(torch.zeros_like(theta), theta), slope, rtol=0, atol=1e-14)
    moved = theta.clone()
    penalty.descend(moved, 0.1)
    assert torch.allclose((theta - moved) / 0.1, slope, rtol=0, atol=1e-13)


def test_methods_that_need_a_path_refuse_adamw(logistic: nn.Module, unbalanced: Stored) -> None:
    with pytest.raises(feddyn.InputError, match="Scaffold with AdamW: the method needs a solver that walks in steps"):
        feddyn.simulate(
            logistic, unbalanced, feddyn.Scaffold(), feddyn.AdamW(0.1, epochs=1), participation=1.0, rounds=1
        )


def test_settings_name_them() -> None:
    """What a setting says makes the same solver again; a momentum of zero is not said, as before there was one."""
    common = {"lr": 0.1, "epochs": 1, "weight_decay": 0.0, "lr_decay": 1.0}
    assert table(feddyn.SGD(0.1, epochs=1)) == {"name": "sgd", **common}
    assert table(feddyn.SGD(0.1, epochs=1, momentum=0.9)) == {"name": "sgd", **common, "momentum": 0.9}
    document = {
        "rounds": 1,
        "participation": 1.0,
        "population": {"source": "synthetic", "kind": "type1", "devices": 2, "samples": 10},
        "model": {"name": "linear"},
        "algorithm": {"name": "feddyn", "alpha": 0.1},
    }
    for solver in (feddyn.SGD(0.1, steps=3, momentum=0.9), feddyn.AdamW(0.1, epochs=2, betas=(0.5, 0.9), clip=1.0)):
        written = {key: list(value) if key == "betas" else value for key, value in table(solver).items()}
        assert plans({**document, "solver": written})[0].plan.solver == solver


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (feddyn.SGD, {"momentum": 1.0}, "momentum must be below 1"),
        (feddyn.SGD, {"momentum": -0.1}, "momentum must be a finite number of at least 0"),
        (feddyn.AdamW, {"betas": (0.9, 1.0)}, "betas must be two numbers below 1"),
        (feddyn.AdamW, {"betas": (0.9,)}, "betas must be two numbers below 1"),
        (feddyn.AdamW, {"betas": (-0.1, 0.9)}, "betas must be a finite number of at least 0"),
        (feddyn.AdamW, {"eps": 0.0}, "eps must be a finite number above 0"),
        (feddyn.AdamW, {"steps": 1}, "AdamW: give either epochs"),
    ],
)
def test_bad_numbers_are_refused(kind: type[Stepwise], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(feddyn.InputError, match=message):
        kind(lr=0.1, epochs=1, **arguments)
