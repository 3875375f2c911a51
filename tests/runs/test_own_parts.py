"""Losses, solvers, methods and models of one's own that would train, but not as meant."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import feddyn
from feddyn.algorithms.base import Scalar, State
from feddyn.data.population import Rows
from feddyn.data.stored import Stored
from feddyn.data.transforms import Images
from feddyn.models import losses
from feddyn.models.flat import Loss
from feddyn.models.stacked import stacked
from feddyn.solvers.stack import StackedWork

SGD = feddyn.SGD(0.1, epochs=2, batch_size=4)
F1 = feddyn.Metric("f1", lambda output, y: (0, len(y)))


def plan(population: feddyn.Population, **changes: Any) -> feddyn.Plan:
    torch.manual_seed(0)
    arguments: dict[str, Any] = {"model": nn.Linear(4, 3), "algorithm": feddyn.FedDyn(0.1), "solver": SGD}
    return feddyn.Plan(**{**arguments, "population": population, "participation": 10, "rounds": 2, **changes})


def test_a_loss_with_class_weights_is_not_batched(unbalanced: Stored) -> None:
    """Over single samples a class weight cancels, so a stack would train without it."""
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 20.0]))
    assert plan(unbalanced).stack_size == 64
    assert plan(unbalanced, loss=weighted).stack_size == 1
    with pytest.raises(feddyn.InputError, match="mixes or weighs the samples"):
        plan(unbalanced, loss=weighted, stack=4).setting()
    assert plan(unbalanced, loss=nn.CrossEntropyLoss(ignore_index=1)).stack_size == 1
    assert plan(unbalanced, loss=nn.CrossEntropyLoss()).stack_size == 64


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("on_demand", [False, True])
def test_a_class_may_have_its_weight_wherever_it_is(zero: bool, on_demand: bool) -> None:
    """Class 2, with the weight of twenty, is only with the last of ten devices, behind 9,000 samples."""
    y = np.repeat(np.arange(20) % 2, 500)
    y[9500:] = 2
    x = np.random.default_rng(0).normal(0, 1, (10_000, 4)).astype(np.float32) + y[:, None]
    population: feddyn.Population = feddyn.Population.from_arrays(x, y, np.arange(10_000) // 1000)
    if on_demand:
        parts = [(torch.from_numpy(x[k : k + 1000]), torch.from_numpy(y[k : k + 1000])) for k in range(0, 10_000, 1000)]
        population = feddyn.Population.on_demand(lambda k: parts[k], [1000] * 10, test=(x, y))
    model = nn.Linear(4, 3)
    if zero:
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 20.0]))
    assert plan(population, model=model).stack_size > 1
    assert plan(population, model=model, loss=nn.CrossEntropyLoss()).stack_size > 1
    assert plan(population, model=model, loss=weighted).stack_size == 1


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("weigh", [lambda w: nn.CrossEntropyLoss(weight=w), lambda w: partial(cross_entropy, weight=w)])
def test_a_loss_that_is_no_plain_mean_is_evaluated_on_all_samples_at_once(
    weigh: Callable[[torch.Tensor], Loss], zero: bool
) -> None:
    """A class-weighted loss is SUM w_y l / SUM w_y over all samples, not the mean of that over chunks of them: the
    classes come sorted, so that every chunk has other weights. Also where the model starts at zero."""
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(0, 3, 2400))
    x = rng.normal(0, 1, (2400, 4)) + y[:, None]
    population = feddyn.Population.from_arrays(x, y, np.arange(2400) % 10)
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    if zero:
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
    loss = weigh(torch.tensor([1.0, 5.0, 20.0], dtype=torch.float64))
    solver = feddyn.SGD(0.1, epochs=1, batch_size=40)
    run = feddyn.simulate(model, population, feddyn.FedAvg(), solver, participation=1.0, rounds=1, loss=loss)
    with torch.no_grad():
        output = run.model("server")(torch.from_numpy(x))
    w = torch.tensor([1.0, 5.0, 20.0], dtype=torch.float64)[y]
    true = (w * -output.log_softmax(1)[torch.arange(2400), y]).sum() / w.sum()
    assert run.history[-1]["models"]["server"]["loss"] == pytest.approx(float(true), rel=1e-12)
    assert run.history[-1]["models"]["server"]["accuracy"] == float((output.argmax(1).numpy() == y).mean())


def test_a_weighted_loss_of_places_is_evaluated_at_once_though_the_model_starts_at_zero() -> None:
    """Sequences of classes, whose losses are all the same where all scores are zero."""
    y = np.sort(np.random.default_rng(0).integers(0, 3, 2400))[:, None].repeat(2, 1)
    x = np.random.default_rng(1).normal(0, 1, (2400, 2, 4)) + y[..., None]
    model, w = nn.Linear(4, 3).double(), torch.tensor([1.0, 5.0, 20.0], dtype=torch.float64)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)

    def loss(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cross_entropy(output.flatten(0, 1), y.flatten(), weight=w)

    population, solver = (
        feddyn.Population.from_arrays(x, y, np.arange(2400) % 10),
        feddyn.SGD(0.1, epochs=1, batch_size=40),
    )
    run = feddyn.simulate(model, population, feddyn.FedAvg(), solver, participation=1.0, rounds=1, loss=loss, workers=1)
    with torch.no_grad():
        true = float(loss(run.model("server")(torch.from_numpy(x)), torch.from_numpy(y)))
    assert run.history[-1]["models"]["server"]["loss"] == pytest.approx(true, rel=1e-12)


def test_a_model_of_one_parameter_counts_one_model_a_round() -> None:
    """FedAvg uploads share_k theta_k and share_k, which is as large as this model, but no model."""
    x = np.linspace(-1, 1, 40)[:, None]
    population = feddyn.Population.from_arrays(x, 2 * x, np.arange(40) % 4)
    model = nn.Linear(1, 1, bias=False).double()
    for method, models in ((feddyn.FedAvg(), 1), (feddyn.FedDyn(0.1), 1), (feddyn.Scaffold(), 2)):
        run = feddyn.simulate(
            model, population, method, SGD, participation=1.0, rounds=3, loss=nn.functional.mse_loss, workers=1
        )
        assert run.history[-1]["transmitted"] == 3 * models


class Normed(feddyn.Algorithm):
    """FedAvg of steps of length 1, by the norm along the last axis, or wrongly of all devices together."""

    def __init__(self, dim: int | None):
        self.dim = dim

    def server(self, theta: torch.Tensor) -> State:
        return {"theta": theta}

    def device(self, theta: torch.Tensor) -> State:
        return {}

    def broadcast(self, server: State) -> State:
        return server

    def problem(self, down: State, device: State, share: Scalar) -> feddyn.Problem:
        return feddyn.Problem(down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: feddyn.Solution) -> tuple[State, State]:
        step = found.theta - down["theta"]
        length = step.norm() if self.dim is None else step.norm(dim=self.dim, keepdim=True)
        return {}, {"step": step / length}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return {"theta": server["theta"] + total["step"] / count}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0


def test_a_method_that_mixes_devices_is_not_stacked(unbalanced: Stored) -> None:
    """The norm of a whole stack is not that of each device; what is found one by one is right."""
    with pytest.warns(UserWarning, match="Normed gives another upload step for stacked devices than alone"):
        mixing = feddyn.Simulation(plan(unbalanced, algorithm=Normed(None)))
    assert mixing.plan.stack_size == 1
    alone = feddyn.Simulation(plan(unbalanced, algorithm=Normed(None), stack=1))
    apart = feddyn.Simulation(plan(unbalanced, algorithm=Normed(-1)))
    assert apart.plan.stack_size == 64
    assert list(mixing) == list(alone)
    *_, last = apart
    assert last["models"]["server"]["loss"] == pytest.approx(
        alone.run.history[-1]["models"]["server"]["loss"], rel=1e-5
    )
    with pytest.raises(feddyn.InputError, match="stack = 4 is not possible: Normed gives another"):
        plan(unbalanced, algorithm=Normed(None), stack=4).setting()


def test_a_method_that_cannot_be_stacked_at_all_trains_one_by_one(unbalanced: Stored) -> None:
    class Picky(Normed):
        def report(self, down: State, device: State, share: Scalar, found: feddyn.Solution) -> tuple[State, State]:
            assert found.theta.dim() == 1, "one device, please"
            return super().report(down, device, share, found)

    said = (
        r"Picky does not take stacked devices \(AssertionError: one device, please.* \(test_own_parts.py, line \d+\)\)"
    )
    with pytest.warns(UserWarning, match=said):
        assert plan(unbalanced, algorithm=Picky(-1)).stack_size == 1


class Drifting(nn.Module):
    """A running mean that is assigned and not changed in place."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return torch.as_tensor(self.linear(x - self.mean))


class Squeezing(nn.Module):
    """A head that loses its axis when there is one sample."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.linear(x).squeeze())


def test_models_that_remember_or_squeeze(unbalanced: Stored) -> None:
    with pytest.raises(feddyn.InputError, match="changes its buffer 'mean'"):
        feddyn.Simulation(plan(unbalanced, model=Drifting()))
    assert plan(unbalanced, model=Squeezing()).stack_size == 1


def test_soft_labels_train_a_linear_model(unbalanced: Stored) -> None:
    soft = torch.nn.functional.one_hot(unbalanced.y, 3) * 0.9 + 0.1 / 3
    owner = np.repeat(np.arange(10), unbalanced.sizes)
    population = feddyn.Population.from_arrays(unbalanced.x, soft, owner)
    simulation = feddyn.Simulation(plan(population))
    first, *_, last = (line["models"]["all"]["loss"] for line in simulation)
    assert last < first


def test_a_solver_that_changes_its_problem_is_told(unbalanced: Stored) -> None:
    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        theta = problem.start
        theta -= 0.1
        return feddyn.Solution(theta)

    for workers in (1, 2):
        with pytest.raises(feddyn.InputError, match=r"problem.start.clone\(\)"):
            list(feddyn.Simulation(plan(unbalanced, solver=solve), workers=workers))


@pytest.mark.parametrize(
    ("method", "value", "words"),
    [
        ("device", {"n": torch.zeros(1, dtype=torch.int64)}, "a device's state has 'n', a torch.int64"),
        ("device", {"n": torch.tensor(0.0)}, "a device's state has 'n', a torch.float32 of shape"),
        (
            "broadcast",
            {"theta": torch.zeros(15, dtype=torch.float64)},
            "what is broadcast has 'theta', a torch.float64",
        ),
    ],
)
def test_a_method_that_keeps_what_cannot_be_kept_is_told(
    unbalanced: Stored, monkeypatch: pytest.MonkeyPatch, method: str, value: dict[str, torch.Tensor], words: str
) -> None:
    monkeypatch.setattr(feddyn.FedAvg, method, lambda *_: value)
    with pytest.raises(feddyn.InputError, match=words):
        feddyn.Simulation(plan(unbalanced, algorithm=feddyn.FedAvg()))


def test_large_control_variates_are_no_divergence(unbalanced: Stored) -> None:
    """Unscaled features of about 3,000 give SCAFFOLD control variates above 1e7."""
    owner = np.repeat(np.arange(10), unbalanced.sizes)
    population = feddyn.Population.from_arrays(3e3 * unbalanced.x, 1e3 * unbalanced.x[:, :1], owner)
    tiny = feddyn.SGD(1e-9, epochs=1, batch_size=8)
    arguments = {"model": nn.Linear(4, 1), "loss": nn.functional.mse_loss, "solver": tiny}
    run = feddyn.Simulation(plan(population, algorithm=feddyn.Scaffold(), **arguments))
    *_, last = run
    assert last["norms"]["c"] > 1e4


def test_other_transforms_and_losses_are_other_settings(unbalanced: Stored) -> None:
    def make(device: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros(4, 3, 2, 2, dtype=torch.uint8), torch.arange(4) % 3

    def images(std: float) -> feddyn.Population:
        return feddyn.Population.on_demand(make, [4] * 3, test=make(0), transform=Images((0.5,) * 3, (std,) * 3))

    assert images(0.3).identity() != images(0.9).identity()
    assert images(0.3).identity() == images(0.3).identity()
    losses: list[Any] = [partial(cross_entropy, label_smoothing=0.1), partial(cross_entropy, label_smoothing=0.9)]
    losses += [nn.CrossEntropyLoss(weight=torch.tensor([1.0, w, 1.0])) for w in (2.0, 3.0)]
    settings = [plan(unbalanced, loss=loss).setting()["loss"] for loss in losses]
    assert len({str(setting) for setting in settings}) == 4
    own = [feddyn.Population.from_arrays(unbalanced.x, unbalanced.y, [0] * 260, transform=lambda x, *_: x)] * 2
    assert own[0].sha256() == own[1].sha256()


def test_what_is_handed_out_is_a_copy(unbalanced: Stored) -> None:
    simulation = feddyn.Simulation(plan(unbalanced))
    list(simulation)
    before = {name: vector.clone() for name, vector in simulation.run.models.items()}
    with torch.no_grad():
        for parameter in simulation.run.model("server").parameters():
            parameter.fill_(7.0)
    simulation.federation.state(3)["lambda"].fill_(7.0)
    simulation.federation.latest(3).fill_(7.0)
    assert all(torch.equal(before[name], simulation.run.models[name]) for name in before)
    assert not bool((simulation.federation.state(3)["lambda"] == 7).all())
    assert not bool((simulation.federation.latest(3) == 7).all())


def test_planning_leaves_the_worlds_randomness_alone(unbalanced: Stored) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    feddyn.Plan(model, unbalanced, feddyn.FedAvg(), SGD, 10, 1)
    assert torch.equal(before, torch.get_rng_state())


def test_a_large_device_does_not_widen_the_tables_of_small_ones() -> None:
    """One device of 20,000 samples among small ones that make 100 passes: 64 devices would need 10 GB of orders."""
    sizes = np.array([20_000, *[11] * 63])
    x, y = torch.zeros(int(sizes.sum()), 1), torch.zeros(int(sizes.sum()), dtype=torch.int64)
    model = feddyn.FlatModel(nn.Linear(1, 2))
    rows = Rows(x, y, np.cumsum(sizes) - sizes, sizes)
    stack = StackedWork(model, stacked(model), 1, rows, 0, np.arange(64, dtype=np.uint64))
    index, valid = stack._table(None, 200, 10)
    assert index.shape == valid.shape == (200, 64, 10)


@pytest.mark.parametrize(
    ("targets", "loss", "words"),
    [
        ([[120.0, 80.0]] * 20, cross_entropy, r"are no probabilities of classes \(row 0: \[120.0, 80.0\]\).*mse_loss"),
        ([[0.0, 1.0]] * 19 + [[1.0, 1.0]], cross_entropy, r"no probabilities of classes \(row 19: .*losses.binary"),
        ([[0.5, 0.5]] * 19 + [[-0.5, 1.5]], cross_entropy, r"no probabilities of classes \(row 19"),
        ([[0, 2]] * 20, losses.binary, r"have 2 among them: binary cross-entropy takes 0, 1 and what lies between"),
    ],
)
def test_targets_that_a_loss_of_probabilities_would_train_on_all_the_same(targets: Any, loss: Loss, words: str) -> None:
    """Wherever among the samples they are."""
    x, y = np.random.default_rng(0).normal(0, 1, (20, 4)), np.array(targets)
    population = feddyn.Population.from_arrays(x.astype(np.float32), y, np.arange(20) // 10)
    with pytest.raises(feddyn.InputError, match=words):
        feddyn.Simulation(plan(population, model=nn.Linear(4, 2), loss=loss, participation=2))


class Alone(nn.Module):
    """A model that cannot take one sample alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, track_running_stats=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layers(x)
        return out


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_while_a_device_trains_says_which_one(workers: int) -> None:
    """A last batch of one sample: the model's own words, the device, its samples, the round and the line."""
    y = np.array([0, 1, 2] * 7)
    population = feddyn.Population.from_arrays(
        np.ones((21, 4), dtype=np.float32), y, np.array(["north", "south", "west"] * 7)
    )
    simulation = feddyn.Simulation(
        plan(population, model=Alone(), participation=3, solver=feddyn.SGD(0.1, epochs=1, batch_size=3)),
        workers=workers,
    )
    words = (
        r"training device north \(7 samples\) in round 1 failed: Expected more than 1 value .*test_own_parts.py, line"
    )
    with pytest.raises(feddyn.FeddynError, match=words):
        list(simulation)


def test_what_is_no_model_metric_callback_or_population_is_one_sentence(unbalanced: Stored, tmp_path: Path) -> None:
    varying = feddyn.Metric("varying", lambda output, y: [0.0] * (1 + len(y) % 7))
    for more, words in (
        ({"metrics": F1}, r"metrics must be a list, such as \[Metric\("),
        ({"metrics": [varying]}, r"the metric varying gives \d sums of some samples and \d of others"),
        ({"callback": 5}, "callback must be a function that takes a line, not 5"),
        ({"model": Remembers()}, "the model cannot be copied; an attribute that holds a tensor of its last call"),
    ):
        arguments: dict[str, Any] = {"model": nn.Linear(4, 3).double(), "participation": 4, "rounds": 1, **more}
        model = arguments.pop("model")
        with pytest.raises(feddyn.InputError, match=words):
            feddyn.simulate(model, unbalanced, feddyn.FedAvg(), SGD, workers=1, **arguments)
    out = tmp_path / "r"
    run = feddyn.simulate(
        nn.Linear(4, 3).double(), unbalanced, feddyn.FedAvg(), SGD, workers=1, participation=4, rounds=1, out=out
    )
    with pytest.raises(feddyn.InputError, match="evaluate takes a population, not a tuple"):
        run.evaluate((np.zeros((2, 4)), np.zeros(2)))  # type: ignore[arg-type]
    with pytest.raises(feddyn.InputError, match=r"model must be a torch.nn.Module, not 'mlp'"):
        feddyn.load(out, model="mlp")  # type: ignore[arg-type]
    with pytest.raises(
        feddyn.InputError, match="what is to be predicted holds a value that is NaN or infinite, first in row 1"
    ):
        run.predict(np.array([[0.0] * 4, [np.nan] * 4]))


class Remembers(nn.Module):
    """A model that keeps its last output, which belongs to a graph of gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3).double()
        self.last: torch.Tensor = self.layer(torch.zeros(1, 4, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = self.layer(x)
        return self.last
