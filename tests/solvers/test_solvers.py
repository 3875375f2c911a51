"""Solvers against autograd of the objective written out in full."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.algorithms.base import State
from feddyn.models.flat import FlatModel
from feddyn.solvers import Work
from feddyn.solvers.work import done

METHODS: list[Any] = [
    pytest.param(feddyn.FedAvg(), id="fedavg"),
    pytest.param(feddyn.FedProx(0.3), id="fedprox"),
    pytest.param(feddyn.Scaffold(), id="scaffold"),
    pytest.param(feddyn.FedDyn(0.5), id="feddyn"),
    pytest.param(feddyn.FedSplit(2.0), id="fedsplit"),
    pytest.param(feddyn.FedDR(0.5, 1.5), id="feddr"),
    pytest.param(feddyn.FedDC(0.5), id="feddc"),
    pytest.param(feddyn.AdaBest(0.5, 0.9), id="adabest"),
    pytest.param(feddyn.FedACG(0.8, 0.1), id="fedacg"),
    pytest.param(feddyn.FedDynM(0.3, 0.8), id="feddynm"),
    pytest.param(feddyn.FedAvgM(0.8), id="fedavgm"),
    pytest.param(feddyn.FedAdam(0.1), id="fedadam"),
    pytest.param(feddyn.FedYogi(0.1), id="fedyogi"),
]
DECAY, LR = 0.01, 0.2


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def make_work(size: int = 12, round: int = 0) -> Work:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(size, 6, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (size,), generator=generator)
    return Work(FlatModel(network()), x, y, round, 5)


def in_the_middle(method: feddyn.Algorithm, theta: torch.Tensor) -> tuple[State, State]:
    """Server and device states as they are in the middle of training: all other than their initial values."""
    generator = torch.Generator().manual_seed(7)

    def moved(state: State) -> State:
        return {k: v + torch.randn(v.shape, generator=generator, dtype=v.dtype) for k, v in state.items()}

    return moved(method.server(theta)), moved(method.device(theta))


def written_out(
    method: feddyn.Algorithm, server: State, device: State, share: float, theta: torch.Tensor
) -> torch.Tensor | float:
    """What each method adds to the device's loss, as its paper prints it."""
    at = server["theta"]
    match method:
        case feddyn.FedAvg() | feddyn.FedAvgM() | feddyn.FedAdam() | feddyn.FedYogi():
            return 0.0
        case feddyn.FedDR():
            relax = device["seen"] * method.relax + 1 - device["seen"]
            y = device["y"] + relax * (at - device["x"])
            return method.alpha / share / 2 * ((theta - y) ** 2).sum()
        case feddyn.FedDC():
            tilt = ((server["c"] / share - device["c"]) * theta).sum()
            return tilt + method.alpha / share / 2 * ((device["drift"] - (at - theta)) ** 2).sum()
        case feddyn.AdaBest():
            return -(device["h"] * theta).sum()
        case feddyn.FedACG():
            return method.beta / 2 * ((theta - at - method.momentum * server["v"]) ** 2).sum()
        case feddyn.FedProx():
            return method.mu / 2 * ((theta - at) ** 2).sum()
        case feddyn.Scaffold():
            return ((server["c"] / share - device["c"]) * theta).sum()
        case feddyn.FedDyn():
            return -(device["lambda"] * theta).sum() + method.alpha / share / 2 * ((theta - at) ** 2).sum()
        case feddyn.FedDynM():
            away = ((theta - server["ahead"]) ** 2).sum()
            return -(device["lambda"] * theta).sum() + method.alpha / share / 2 * away
        case feddyn.FedSplit():
            return ((theta - (2 * at - device["z"])) ** 2).sum() / (2 * method.step * share)
    raise AssertionError(method)


@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize("clip", [None, 0.05, 100.0])
@pytest.mark.parametrize("method", METHODS)
def test_an_sgd_step_is_autograd_of_the_written_out_objective(
    method: feddyn.Algorithm, clip: float | None, share: float
) -> None:
    """Two steps, so that the second is taken where theta is not the center."""
    work = make_work()
    server, device = in_the_middle(method, work.theta.clone())
    problem = method.problem(method.broadcast(server), device, share)
    theta = problem.start.clone().requires_grad_()
    for _ in range(2):
        objective = work.loss(theta) + written_out(method, server, device, share, theta)
        (g,) = torch.autograd.grad(objective, theta)
        if clip is not None:
            g = g * min(1.0, clip / float(g.norm()))
        theta = (theta - LR * (g + DECAY * theta)).detach().requires_grad_()
    found = feddyn.SGD(LR, epochs=2, weight_decay=DECAY, clip=clip)(problem, work)
    assert torch.allclose(found.theta, theta.detach(), rtol=0, atol=1e-13)
    assert not torch.allclose(found.theta, server["theta"])
    assert found.path is not None
    assert float(found.path) == pytest.approx(2 * LR)


def test_learning_rate_decays_and_halves() -> None:
    sgd = feddyn.SGD(0.8, epochs=1, lr_decay=0.5, halve_every=3)
    assert [sgd.rate(t) for t in range(4)] == pytest.approx([0.8, 0.4, 0.2, 0.05])
    work = make_work(round=3)
    path = feddyn.SGD(0.8, steps=5, lr_decay=0.5)(feddyn.Problem(work.theta.clone()), work).path
    assert path is not None
    assert float(path) == pytest.approx(5 * 0.1)


@pytest.mark.parametrize("stack", [1, 4])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    ("algorithm", "numbers"),
    [
        (feddyn.FedAvg(), {"lr": 1e300}),
        (feddyn.FedAvg(), {"lr": 1e30, "weight_decay": 1e30}),
        (feddyn.FedAvg(), {"lr": 1e30, "weight_decay": 1e300, "clip": 1.0}),
        (feddyn.FedDyn(1e300), {"lr": 0.1}),
        (feddyn.FedDyn(1e300), {"lr": 0.1, "clip": 1.0}),
        (feddyn.FedAvg(), {"lr": 0.1, "lr_decay": 1e300}),
    ],
)
def test_numbers_that_the_models_type_does_not_hold_make_it_diverge(
    algorithm: feddyn.Algorithm, numbers: dict[str, float], hidden: bool, stack: int
) -> None:
    """Alone or in a stack, in closed form or by autograd: the usual sentence."""
    layers = [nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)] if hidden else [nn.Linear(6, 3)]
    work = make_work(24)
    population = feddyn.Population.from_arrays(work.x, work.y, np.arange(24) % 4)
    solver = feddyn.SGD(epochs=1, **numbers)  # type: ignore[arg-type]
    with pytest.raises(feddyn.DivergenceError, match=r"(diverged|exploded to .*) in round .* a smaller lr"):
        feddyn.simulate(
            nn.Sequential(*layers), population, algorithm, solver, participation=1.0, rounds=4, stack=stack, workers=1
        )


@pytest.mark.parametrize("length", [{"epochs": 2**63 - 1}, {"steps": 10**12}])
def test_more_steps_than_memory_can_plan_are_refused(length: dict[str, Any]) -> None:
    work = make_work(24)
    population = feddyn.Population.from_arrays(work.x, work.y, np.arange(24) % 4)
    with pytest.raises(feddyn.InputError, match=r"cannot be planned at once .* use fewer epochs or steps"):
        feddyn.simulate(
            nn.Linear(6, 3), population, feddyn.FedAvg(), feddyn.SGD(0.1, **length), participation=2, rounds=1
        )


@pytest.mark.parametrize(("size", "batch"), [(12, 5), (12, 4), (3, 5), (12, None)])
def test_every_epoch_visits_every_sample_once(size: int, batch: int | None) -> None:
    work = make_work(size)
    seen = [step.batch for step in work.steps(3, None, batch)]
    if batch is None or batch >= size:
        assert seen == [None] * 3
        return
    per_epoch = -(-size // batch)
    assert len(seen) == 3 * per_epoch
    for epoch in range(3):
        rows = torch.cat(seen[epoch * per_epoch : (epoch + 1) * per_epoch])
        assert sorted(rows.tolist()) == list(range(size))


def test_batches_are_augmented_by_the_devices_seed_and_the_loss_is_not() -> None:
    """A transform that, given a generator, makes noise of the samples: gradients are taken on noise, the same for equal
    seeds, and the loss that exact solvers minimise on the samples as they are."""

    def noise(x: torch.Tensor, dtype: torch.dtype, generator: torch.Generator | None = None) -> torch.Tensor:
        return x if generator is None else torch.randn(x.shape, generator=generator, dtype=dtype)

    plain = make_work()
    noisy = [Work(plain.model, plain.x, plain.y, 0, seed, noise) for seed in (8, 8, 80)]
    gradients = [work.gradient().clone() for work in (plain, *noisy)]
    assert torch.equal(gradients[1], gradients[2])
    assert not torch.allclose(gradients[0], gradients[1])
    assert not torch.allclose(gradients[1], gradients[3])
    assert all(torch.equal(work.loss(plain.theta), plain.loss(plain.theta)) for work in noisy)


def test_a_number_of_steps_goes_round_the_data() -> None:
    """7 steps of 5 on 12 samples: two epochs of 3 batches and one batch of a third."""
    seen = [len(step.batch) for step in make_work().steps(None, 7, 5)]
    assert seen == [5, 5, 2, 5, 5, 2, 5]


def test_one_step_is_algorithm_2() -> None:
    """theta_k = theta - (grad L_k(theta) - lambda_k) / alpha_k, and then lambda_k becomes grad L_k(theta)."""
    method, work, share = feddyn.FedDyn(3.0), make_work(), 0.4
    server, device = in_the_middle(method, work.theta.clone())
    down = method.broadcast(server)
    found = feddyn.OneStep(weight_decay=DECAY)(method.problem(down, device, share), work)
    theta = server["theta"].clone().requires_grad_()
    (g,) = torch.autograd.grad(work.loss(theta) + DECAY / 2 * (theta**2).sum(), theta)
    assert torch.allclose(found.theta, server["theta"] - (g - device["lambda"]) / (3.0 / share))
    after, _ = method.report(down, device, share, found)
    assert torch.allclose(after["lambda"], g)


def test_one_step_takes_the_whole_objective() -> None:
    """FedSplit's center is not where it starts, so the quadratic term counts: one step of length lr along its slope."""
    method, work, share = feddyn.FedSplit(2.0), make_work(), 0.4
    server, device = in_the_middle(method, work.theta.clone())
    theta = server["theta"].clone().requires_grad_()
    penalised = work.loss(theta) + written_out(method, server, device, share, theta) + DECAY / 2 * (theta**2).sum()
    (g,) = torch.autograd.grad(penalised, theta)
    found = feddyn.OneStep(LR, weight_decay=DECAY)(method.problem(method.broadcast(server), device, share), work)
    assert torch.allclose(found.theta, server["theta"] - LR * g)
    assert found.path == LR


def test_one_step_without_a_penalty_needs_a_length() -> None:
    with pytest.raises(feddyn.InputError, match="give lr"):
        feddyn.OneStep()(feddyn.Problem(make_work().theta.clone()), make_work())


def test_exact_meets_its_tolerance() -> None:
    """The gradient norm of the whole objective, by autograd and not by the solver's own word."""
    work = make_work()
    work.model = FlatModel(nn.Linear(6, 3).double())
    work.theta = work.model.theta
    start = torch.zeros_like(work.theta)
    problem = feddyn.Problem(start, tilt=torch.full_like(start, 0.1), prox=0.5, center=torch.ones_like(start))
    theta = feddyn.Exact(weight_decay=DECAY)(problem, work).theta.clone().requires_grad_()
    penalty = 0.1 * theta.sum() + 0.25 * ((theta - 1) ** 2).sum() + DECAY / 2 * (theta**2).sum()
    (g,) = torch.autograd.grad(work.loss(theta) + penalty, theta)
    assert float(g.norm()) <= 1e-12


def test_exact_counts_its_gradients() -> None:
    """On a quadratic Newton's method is there after one step: one gradient of every sample where it starts and one
    where it ends; started at the minimum, one."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(7, width, generator=generator, dtype=torch.float64) for width in (3, 2))
    model = FlatModel(nn.Linear(3, 2).double(), nn.functional.mse_loss)
    exact, start = feddyn.Exact(tolerance=1e-9, weight_decay=DECAY), model.theta.clone()
    for gradients in (2 * 7, 7):
        work = Work(model, x, y, 0, 0)
        start = exact(feddyn.Problem(start), work).theta
        assert work.gradients == gradients


def test_exact_shortens_steps_that_would_overshoot() -> None:
    """The loss sqrt(1 + theta^2) from theta = 3: Newton's step goes to -theta^3 = -27, and further each time."""

    def loss(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (1 + output.square()).sqrt().mean()

    model = FlatModel(nn.Linear(1, 1, bias=False).double(), loss)
    work = Work(model, torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1), 0, 0)
    found = feddyn.Exact()(feddyn.Problem(torch.tensor([3.0], dtype=torch.float64)), work)
    assert float(found.theta) == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize(("steps", "effort", "expected"), [(20, 0.51, 10), (3, 0.99, 2), (3, 0.01, 1), (7, 1.0, 7)])
def test_a_slow_device_gets_the_whole_part_of_its_steps_done(steps: int, effort: float, expected: int) -> None:
    assert done(steps, effort) == expected


def test_exact_says_when_it_cannot() -> None:
    single = Work(FlatModel(network().float()), torch.randn(4, 6), torch.zeros(4).long(), 0, 0)
    with pytest.raises(feddyn.InputError, match="float64"):
        feddyn.Exact()(feddyn.Problem(single.theta.clone()), single)
    work = make_work()
    with pytest.raises(feddyn.FeddynError, match="Newton steps"):
        feddyn.Exact(iterations=1)(feddyn.Problem(work.theta.clone()), work)
    work.y.zero_()
    with pytest.raises(feddyn.FeddynError, match=r"curvature .* is singular"):
        feddyn.Exact()(feddyn.Problem(torch.full_like(work.theta, 1e3)), work)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lr": 0.0, "epochs": 1}, "lr must be a finite number above 0"),
        ({"lr": 0.1}, "either epochs"),
        ({"lr": 0.1, "epochs": 1, "steps": 1}, "either epochs"),
        ({"lr": 0.1, "epochs": 0}, "epochs must be a whole number"),
        ({"lr": 0.1, "epochs": 99999999999999999999}, "epochs must be a whole number of at most 9223372036854775807"),
        ({"lr": 0.1, "steps": 10**5000}, "steps must be .* not one of 16610 binary digits"),
        ({"lr": 10**400, "steps": 1}, "lr must be a finite number above 0"),
        ({"lr": 0.1, "epochs": 1, "batch_size": 2.5}, "batch_size must be a whole number"),
        ({"lr": 0.1, "epochs": 1, "weight_decay": -1.0}, "weight_decay must be a finite number of at least 0"),
        ({"lr": 0.1, "epochs": 1, "clip": 0.0}, "clip must be a finite number above 0"),
    ],
)
def test_bad_solvers_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(feddyn.InputError, match=message):
        feddyn.SGD(**arguments)


@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("method", METHODS)
def test_sharpness_aware_steps_perturb_the_gradient_of_the_loss_only(
    method: feddyn.Algorithm, momentum: float, clip: float | None
) -> None:
    """Two full-batch steps, against autograd: g1 = grad f(theta), g2 = grad f(theta + rho g1/||g1||), and tilt, penalty
    and decay at theta. Every step takes two gradients of 12 samples."""
    work, rho = make_work(), 0.3
    server, device = in_the_middle(method, work.theta.clone())
    problem = method.problem(method.broadcast(server), device, 0.4)
    theta, velocity = problem.start.clone(), torch.zeros_like(problem.start)
    for _ in range(2):
        leaf = theta.clone().requires_grad_()
        (g1,) = torch.autograd.grad(work.loss(leaf), leaf)
        there = (theta + rho * g1 / g1.norm()).requires_grad_()
        (g,) = torch.autograd.grad(work.loss(there), there)
        added = written_out(method, server, device, 0.4, leaf)
        if isinstance(added, torch.Tensor):
            g = g + torch.autograd.grad(added, leaf)[0]
        if clip is not None:
            g = g * min(1.0, clip / float(g.norm()))
        velocity = momentum * velocity + g + DECAY * theta
        theta = theta - LR * velocity
    sgd = feddyn.SGD(LR, epochs=2, weight_decay=DECAY, clip=clip, momentum=momentum, sam=rho)
    assert torch.allclose(sgd(problem, work).theta, theta, rtol=0, atol=1e-6)
    assert work.gradients == 2 * 2 * 12
    assert not torch.allclose(replace(sgd, sam=0.0)(problem, make_work()).theta, theta, rtol=0, atol=1e-4)


@pytest.mark.parametrize("network", ["tanh", "linear", "relu"])
def test_sharpness_aware_stacks_equal_devices_alone(unbalanced: feddyn.Population, network: str) -> None:
    """By vmap and in closed form, with devices that finish early, to the last count of gradients."""
    torch.manual_seed(0)
    inner = {"tanh": [nn.Linear(4, 5), nn.Tanh()], "linear": [], "relu": [nn.Linear(4, 5), nn.ReLU()]}[network]
    model = nn.Sequential(*inner, nn.Linear(5 if inner else 4, 3)).double()
    sgd = feddyn.SGD(0.1, epochs=2, batch_size=8, weight_decay=0.01, clip=1.0, sam=0.2)
    runs = [
        feddyn.simulate(
            model, unbalanced, feddyn.FedDyn(0.1), sgd, participation=5, rounds=3, stack=stack, workers=1, seed=1
        )
        for stack in (1, 5)
    ]
    plain = feddyn.simulate(
        model,
        unbalanced,
        feddyn.FedDyn(0.1),
        feddyn.SGD(0.1, epochs=2, batch_size=8),
        participation=5,
        rounds=3,
        seed=1,
    )
    assert torch.allclose(runs[0].models["all"], runs[1].models["all"], rtol=0, atol=1e-12)
    counts = [run.history[-1]["gradients"] for run in (*runs, plain)]
    assert counts[0] == counts[1] == 2 * counts[2]


def test_sharpness_aware_steps_see_a_batch_augmented_once() -> None:
    """Both gradients of a step are of the same picture: the transform draws once a step, not twice."""
    drawn = []

    def transform(x: torch.Tensor, dtype: torch.dtype, generator: torch.Generator | None = None) -> torch.Tensor:
        drawn.append(float(torch.rand((), generator=generator)))
        return x + drawn[-1]

    plain = make_work()
    work = Work(plain.model, plain.x, plain.y, 0, 5, transform)
    feddyn.SGD(LR, steps=3, sam=0.1)(feddyn.Problem(work.theta.clone()), work)
    assert len(drawn) == len(set(drawn)) == 3


@pytest.mark.parametrize("bad", [-0.1, float("nan"), "far", True])
def test_a_bad_sam_is_refused(bad: Any) -> None:
    with pytest.raises(feddyn.InputError, match="SGD: sam must be a finite number of at least 0"):
        feddyn.SGD(0.1, epochs=1, sam=bad)
