"""The Python entry: what it takes, what it gives, and that equal arguments give equal bits."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored

SGD = feddyn.SGD(lr=0.2, epochs=4, batch_size=None, weight_decay=1e-3, lr_decay=1.0, clip=10.0)


def run(population: Stored, **changes: Any) -> feddyn.Run:
    torch.manual_seed(0)
    arguments: dict[str, Any] = {"model": nn.Linear(4, 3), "algorithm": feddyn.FedDyn(alpha=0.05), "solver": SGD}
    arguments |= {"participation": [[0, 3], [1, 2]], "rounds": 2, "seed": 0, **changes}
    return feddyn.simulate(population=population, **arguments)


def same(one: feddyn.Run, other: feddyn.Run) -> bool:
    vectors = all(torch.equal(one.models[name], other.models[name]) for name in ("server", "active", "all"))
    return vectors and one.history == other.history


def test_the_documented_entry(unbalanced: Stored) -> None:
    result = run(unbalanced)
    assert set(result.models) == {"server", "active", "all", "best"}
    assert all(vector.shape == (15,) for vector in result.models.values())
    assert [line["active"] for line in result.history] == [[0, 3], [1, 2]]
    assert result.status == "finished"
    assert set(result.history[0]["models"]) == {"server", "active", "all"}
    assert set(result.history[0]["models"]["all"]) == {"loss", "accuracy", "objective"}


def test_the_model_is_where_it_starts_and_is_not_changed(unbalanced: Stored) -> None:
    model = nn.Linear(4, 3)
    before = nn.utils.parameters_to_vector(model.parameters()).clone()
    result = run(unbalanced, model=model)
    assert torch.equal(nn.utils.parameters_to_vector(model.parameters()), before)
    trained = result.model("server")
    assert torch.equal(nn.utils.parameters_to_vector(trained.parameters()), result.models["server"])


@pytest.mark.parametrize("participation", [0.3, 3, 1.0, [[4, 1], [1, 9]]])
def test_equal_arguments_give_equal_bits(unbalanced: Stored, participation: Any) -> None:
    """Whatever happened to the global random numbers and threads in between, which are left as they were."""
    network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    solver = feddyn.SGD(0.1, epochs=2, batch_size=7)
    one = run(unbalanced, model=network, solver=solver, participation=participation, seed=5)
    torch.manual_seed(123)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    other = run(unbalanced, model=network, solver=solver, participation=participation, seed=5)
    assert same(one, other)
    torch.manual_seed(123)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    third = run(unbalanced, model=network, solver=solver, participation=participation, seed=6)
    assert not same(one, third)


def test_a_devices_randomness_does_not_depend_on_the_others(unbalanced: Stored) -> None:
    """Device 3 finds the same model in round 1, whoever else is active, in whatever order, and in whatever stack."""
    solver, found = feddyn.SGD(0.1, epochs=2, batch_size=4), []
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    for active, stack in (([3], 1), ([3, 1], 1), ([7, 3, 0], 1), ([7, 3, 0], 2), ([3, 1, 2, 4], 4)):
        plan = feddyn.Plan(model, unbalanced, feddyn.Scaffold(), solver, [active], 1, stack=stack)
        simulation = feddyn.Simulation(plan)
        list(simulation)
        found.append(simulation.federation.latest(3))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    for batched in found[3:]:
        assert torch.allclose(found[0], batched, rtol=0, atol=1e-6)


def test_the_mean_of_all_devices(unbalanced: Stored) -> None:
    """Kept up round by round, it equals the mean over every device's latest model; never active: the initial one."""
    for algorithm in (feddyn.FedAvg(), feddyn.FedDyn(0.1)):
        plan = feddyn.Plan(nn.Linear(4, 3).double(), unbalanced, algorithm, SGD, 2, 3)
        simulation = feddyn.Simulation(plan)
        for _ in simulation:
            federation = simulation.federation
            weights = [algorithm.weight(unbalanced.share(k)) for k in range(unbalanced.devices)]
            models = [federation.latest(k) for k in range(unbalanced.devices)]
            mean = sum(w * theta for w, theta in zip(weights, models, strict=True)) / unbalanced.devices
            assert torch.allclose(torch.as_tensor(mean), federation.models["all"], rtol=0, atol=1e-14)


def test_what_crosses_the_wire_is_counted(unbalanced: Stored) -> None:
    """15 float32 parameters are 60 bytes; FedAvg adds its share (4 bytes), FedDR whether it joined, AdaBest sends down
    the round; SCAFFOLD and FedDC send two vectors each way."""
    counts = {}
    for algorithm in (
        feddyn.FedDyn(0.1),
        feddyn.FedAvg(),
        feddyn.Scaffold(),
        feddyn.FedSplit(1.0),
        feddyn.FedDR(0.1),
        feddyn.FedDC(0.1),
        feddyn.AdaBest(0.1, 0.5),
        feddyn.FedACG(0.5),
        feddyn.FedDynM(0.1, 0.5),
        feddyn.FedAdam(0.1),
    ):
        line = run(unbalanced, algorithm=algorithm).history[-1]
        counts[type(algorithm).__name__] = (line["transmitted"], line["bytes_up"], line["bytes_down"])
    assert counts == {
        "FedDyn": (2, 240, 240),
        "FedAvg": (2, 256, 240),
        "Scaffold": (4, 480, 480),
        "FedSplit": (2, 240, 240),
        "FedDR": (2, 256, 240),
        "FedDC": (4, 480, 480),
        "AdaBest": (2, 240, 256),
        "FedACG": (2, 240, 240),
        "FedDynM": (2, 240, 240),
        "FedAdam": (2, 256, 240),
    }
    three = run(unbalanced, participation=[[0, 3, 5]], rounds=1).history[-1]
    assert (three["transmitted"], three["bytes_up"], three["bytes_down"]) == (1, 180, 180)
    sizes = unbalanced.sizes
    assert run(unbalanced).history[-1]["gradients"] == 4 * (sizes[0] + sizes[3] + sizes[1] + sizes[2])


def test_a_target_stops_the_run(unbalanced: Stored) -> None:
    schedule = [[0, 3], [1, 2], [4, 5], [6, 7], [8, 9]]
    whole = run(unbalanced, participation=schedule, rounds=5)
    losses = [line["models"]["all"]["objective"] for line in whole.history]
    target = feddyn.Target("objective", losses[2])
    stopped = run(unbalanced, participation=schedule, rounds=5, target=target)
    first = next(t for t, loss in enumerate(losses, 1) if loss <= losses[2])
    assert len(stopped.history) == first
    assert stopped.status == "target reached"
    assert stopped.summary["reached"]["transmitted"] == first
    on = run(unbalanced, participation=schedule, rounds=5, target=feddyn.Target("objective", losses[2], stop=False))
    assert len(on.history) == 5
    assert on.summary["reached"]["round"] == first
    assert run(unbalanced, target=feddyn.Target("objective", 0.0)).summary["reached"] is None
    exactly = feddyn.Target("accuracy", whole.history[0]["models"]["all"]["accuracy"])
    assert run(unbalanced, participation=schedule, rounds=5, target=exactly).summary["reached"]["round"] == 1


def test_evaluation_on_a_test_set_and_not_every_round(unbalanced: Stored) -> None:
    population = feddyn.Population.from_arrays(
        unbalanced.x,
        unbalanced.y,
        np.repeat(np.arange(10), unbalanced.sizes),
        test=(unbalanced.x[:9], unbalanced.y[:9]),
    )
    evaluation = feddyn.Evaluation(every=2, models=["server"])
    result = run(population, participation=2, rounds=5, evaluation=evaluation)
    assert ["models" in line for line in result.history] == [False, True, False, True, True]
    figures = result.history[-1]["models"]["server"]
    assert set(figures) == {"loss", "accuracy"}
    model = result.model("server").double()
    with torch.no_grad():
        expected = nn.functional.cross_entropy(model(unbalanced.x[:9]), unbalanced.y[:9])
        hits = float((model(unbalanced.x[:9]).argmax(1) == unbalanced.y[:9]).double().mean())
    assert figures["loss"] == pytest.approx(float(expected), rel=1e-5)
    assert figures["accuracy"] == hits
    assert 0 < hits < 1


def test_another_loss_for_regression(unbalanced: Stored) -> None:
    x = unbalanced.x
    y = (x @ torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64))[:, None]
    population = feddyn.Population.from_arrays(x, y, np.repeat(np.arange(10), unbalanced.sizes))
    result = feddyn.simulate(
        nn.Linear(4, 1),
        population,
        feddyn.FedDyn(0.5),
        feddyn.SGD(0.1, epochs=10, batch_size=10),
        participation=4,
        rounds=40,
        loss=nn.functional.mse_loss,
    )
    assert set(result.initial["all"]) == {"loss", "objective"}
    assert result.history[-1]["models"]["all"]["loss"] < 1e-2 < result.initial["all"]["loss"]
    assert result.setting["needs"] == ["model", "population", "loss"]


def test_a_solver_of_ones_own(unbalanced: Stored) -> None:
    """A function that takes one step by autograd of the objective gives what OneStep gives."""

    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        theta = problem.start.clone().requires_grad_()
        (g,) = torch.autograd.grad(work.loss(theta), theta)
        assert problem.tilt is not None
        return feddyn.Solution(problem.start - (g + problem.tilt) / problem.prox)

    mine = run(unbalanced, solver=solve)
    ours = run(unbalanced, solver=feddyn.OneStep())
    assert torch.allclose(mine.models["server"], ours.models["server"], atol=1e-5)
    with pytest.raises(feddyn.InputError, match="does not report the path"):
        run(unbalanced, algorithm=feddyn.Scaffold(), solver=lambda p, w: feddyn.Solution(p.start))
    with pytest.raises(feddyn.InputError, match="return Solution"):
        run(unbalanced, solver=lambda p, w: p.start)


def test_divergence_keeps_all_rounds_before(unbalanced: Stored, tmp_path: Path) -> None:
    calls = []

    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        calls.append(work.round)
        return feddyn.Solution(problem.start * (float("nan") if work.round == 3 else 1.0))

    with pytest.raises(feddyn.DivergenceError, match=r"device \d diverged in round 4") as stopped:
        run(unbalanced, solver=solve, participation=2, rounds=9, out=tmp_path / "out")
    assert len(stopped.value.run.history) == 3
    assert all(bool(vector.isfinite().all()) for vector in stopped.value.run.models.values())
    assert len((tmp_path / "out" / "rounds.jsonl").read_text().splitlines()) == 3
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["status"] == "diverged"
    assert "round 4" in summary["message"]


def test_nothing_of_a_diverged_round_is_kept(unbalanced: Stored) -> None:
    """Device 0 has finished when device 1 diverges: its state, its model and the server stay as they were."""

    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        broken = work.round == 1 and work.size == unbalanced.size(1)
        return feddyn.Solution(problem.start + (float("inf") if broken else 1.0 + work.round))

    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), solve, [[0, 1], [0, 1]], 2)
    simulation = feddyn.Simulation(plan)
    rounds = iter(simulation)
    next(rounds)
    federation = simulation.federation
    before = {"lambda": federation.state(0)["lambda"].clone(), "latest": federation.latest(0).clone()}
    before |= {f"server {name}": value.clone() for name, value in federation.models.items()}
    with pytest.raises(feddyn.DivergenceError, match="device 1 diverged in round 2"):
        next(rounds)
    after = {"lambda": federation.state(0)["lambda"], "latest": federation.latest(0)}
    after |= {f"server {name}": value for name, value in federation.models.items()}
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_an_exploding_loss_is_divergence(unbalanced: Stored) -> None:
    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        return feddyn.Solution(problem.start * 1e6)

    with pytest.raises(feddyn.DivergenceError, match="exploded"):
        run(unbalanced, algorithm=feddyn.FedAvg(), solver=solve)


def test_a_device_at_the_edge_of_float32_is_divergence(unbalanced: Stored) -> None:
    """Long before that, models are no longer models; and their sum would be infinite, though each is finite."""

    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        theta = torch.zeros_like(problem.start)
        theta[0] = -3e38
        return feddyn.Solution(theta)

    with pytest.raises(
        feddyn.DivergenceError, match=r"device \d diverged in round 1 \(the norm of its model is 3.0e\+38\)"
    ):
        run(unbalanced, solver=solve)


def test_a_server_that_overflows_is_divergence_even_unevaluated(
    unbalanced: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feddyn.FedAvg, "aggregate", lambda self, server, *_: {"theta": server["theta"] / 0})
    with pytest.raises(feddyn.DivergenceError, match="the norm of the server's theta exploded to inf in round 1"):
        run(unbalanced, algorithm=feddyn.FedAvg(), evaluation=feddyn.Evaluation(every=2))


@pytest.mark.parametrize("what", ["keep", "upload"])
def test_a_method_that_forgets_a_vector_is_told(unbalanced: Stored, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    whole = feddyn.Scaffold.report

    def forgetful(self: feddyn.Scaffold, *arguments: Any) -> Any:
        state, up = whole(self, *arguments)
        late = not torch.equal(arguments[0]["theta"], arguments[3].theta)  # not when it is tried out
        return ({}, up) if late and what == "keep" else (state, {"theta": up["theta"]} if late else up)

    monkeypatch.setattr(feddyn.Scaffold, "report", forgetful)
    with pytest.raises(feddyn.InputError, match=f"Scaffold: what devices {what} must be the same vectors"):
        run(unbalanced, algorithm=feddyn.Scaffold())


def test_a_record_of_objects_in_memory_says_so(unbalanced: Stored, tmp_path: Path) -> None:
    result = run(unbalanced, out=tmp_path / "out")
    setting = tomllib.loads((tmp_path / "out" / "setting.toml").read_text())
    assert setting == result.setting
    assert setting["needs"] == ["model", "population"]
    assert setting["population"]["sha256"] == unbalanced.sha256()
    with pytest.raises(feddyn.InputError, match=r"has the record of a run that has ended \(finished\)"):
        run(unbalanced, out=tmp_path / "out")


def test_the_key_covers_every_field(unbalanced: Stored) -> None:
    other = feddyn.synthetic("type1", devices=10, samples=5, features=4, classes=3)
    runs = [
        run(unbalanced),
        run(unbalanced, seed=1),
        run(unbalanced, rounds=1),
        run(unbalanced, participation=2),
        run(unbalanced, participation=0.2),
        run(unbalanced, algorithm=feddyn.FedDyn(0.06)),
        run(unbalanced, algorithm=feddyn.FedProx(0.05)),
        run(unbalanced, solver=feddyn.SGD(0.2, epochs=4)),
        run(unbalanced, model=nn.Linear(4, 3, bias=False)),
        run(unbalanced, evaluation=feddyn.Evaluation(every=2)),
        run(unbalanced, target=feddyn.Target("loss", 0.1)),
        run(unbalanced, target=feddyn.Target("loss", 0.2)),
        run(other),
    ]
    assert len({result.summary["key"] for result in runs}) == len(runs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"participation": 0}, "participation cannot be 0"),
        ({"participation": 0.0}, "participation cannot be 0.0"),
        ({"participation": 1.5}, "participation cannot be 1.5"),
        ({"participation": 10.0}, "participation cannot be 10.0"),
        ({"participation": True}, "participation cannot be True"),
        ({"participation": 11}, "11 of 10 devices"),
        ({"participation": float("nan")}, "participation cannot be nan"),
        ({"participation": "half"}, "participation cannot be 'half'"),
        ({"participation": []}, "the schedule has 0 rounds"),
        ({"participation": [[0]]}, "the schedule has 1 rounds"),
        ({"participation": [[0], []]}, "round 2 of the schedule is empty"),
        ({"participation": [[0], [0, 0]]}, "names a device twice"),
        ({"participation": [[0], [10]]}, "names device 10"),
        ({"participation": [[0], [True]]}, "names True"),
        ({"participation": [0, 1]}, "round 1 of the schedule must be a list"),
        ({"rounds": 0}, "rounds must be"),
        ({"rounds": 1.5}, "rounds must be"),
        ({"rounds": 10**20}, "rounds must be a whole number of at most"),
        ({"seed": 10**20}, "seed must be a whole number of at most"),
        ({"stack": 10**20}, "stack must be a whole number of at most"),
        ({"workers": 10**9}, "workers must be a whole number of at most 1024"),
        ({"state_memory": 10**20}, "state_memory must be a whole number of at most"),
        ({"seed": -1}, "seed must be"),
        ({"stack": 0}, "stack must be"),
        ({"workers": 0}, "workers must be"),
        ({"state_memory": -1}, "state_memory must be"),
        (
            {"stack": 4, "solver": feddyn.OneStep()},
            "the solver takes one device at a time, unlike SGD; use stack = 1",
        ),
        ({"stack": 4, "model": nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))}, "vmap does not work with this model"),
        (
            {"stack": 4, "model": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, track_running_stats=False))},
            "is not possible",
        ),
        ({"solver": feddyn.SGD}, "the solver is the class SGD: give one of it"),
        ({"algorithm": "feddyn"}, "algorithm must be a Algorithm, not a str"),
        ({"model": None}, "model must be a Module"),
        ({"model": nn.LazyLinear(3)}, "has no shape yet"),
        ({"target": ("accuracy", 0.9)}, "target must be a Target"),
        ({"evaluation": 3}, "evaluation must be a Evaluation"),
        ({"loss": None}, "the loss must be a function"),
        ({"loss": lambda out, y: nn.functional.cross_entropy(out, y, reduction="sum")}, "the mean over the batch"),
        ({"solver": feddyn.Exact()}, "needs float64"),
        ({"solver": feddyn.OneStep(), "algorithm": feddyn.FedAvg()}, "give lr"),
        ({"solver": feddyn.Exact(), "algorithm": feddyn.Scaffold()}, "Scaffold with Exact"),
        ({"model": nn.Linear(5, 3)}, "does not fit the devices' samples"),
        ({"model": nn.Linear(4, 2)}, "does not fit the devices' samples"),
        ({"model": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))}, "GroupNorm"),
        (
            {"target": feddyn.Target("accuracy", 0.5, "server"), "evaluation": feddyn.Evaluation(models=["all"])},
            "name it in",
        ),
    ],
)
def test_bad_arguments_are_refused(unbalanced: Stored, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(feddyn.InputError, match=message):
        run(unbalanced, **changes)


def test_targets_that_would_train_but_not_as_meant_are_refused(unbalanced: Stored) -> None:
    owner = np.repeat(np.arange(10), unbalanced.sizes)
    values = torch.randn(len(unbalanced.y))

    def regress(y: torch.Tensor, model: nn.Module, **more: Any) -> feddyn.Run:
        population = feddyn.Population.from_arrays(unbalanced.x, y, owner)
        return feddyn.simulate(model, population, feddyn.FedAvg(), SGD, participation=1, rounds=1, **more)

    flat = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
    with pytest.raises(feddyn.InputError, match="for regression"):
        regress(values, flat)
    with pytest.raises(feddyn.InputError, match="for regression"):
        regress(values[:, None], nn.Linear(4, 1))
    with pytest.raises(feddyn.InputError, match="have to be of one shape"):
        regress(values, nn.Linear(4, 1), loss=nn.functional.mse_loss)
    with pytest.raises(feddyn.InputError, match="there is a class -100"):
        regress(torch.where(unbalanced.y == 1, -100, unbalanced.y), nn.Linear(4, 3))
    figures = regress(values.round().long().float(), flat, loss=nn.functional.mse_loss).history[0]["models"]["all"]
    assert "accuracy" not in figures


def test_numpys_numbers_are_numbers(unbalanced: Stored, tmp_path: Path) -> None:
    plain = run(unbalanced, participation=2, rounds=3, seed=4, out=tmp_path / "plain")
    numpy = run(
        unbalanced,
        participation=np.int64(2),
        rounds=np.int32(3),
        seed=np.int64(4),
        algorithm=feddyn.FedDyn(np.float64(0.05)),
        out=tmp_path / "numpy",
    )
    assert same(plain, numpy)
    assert plain.summary["key"] == numpy.summary["key"]


def test_a_simulation_runs_once_and_schedules_may_be_numpys(unbalanced: Stored) -> None:
    schedule: Any = [[np.int64(1), np.int64(2)], [3]]
    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.FedAvg(), SGD, schedule, 2)
    simulation = feddyn.Simulation(plan)
    for _ in simulation:
        break
    assert len(simulation.run.summary["key"]) == 16
    with pytest.raises(feddyn.FeddynError, match="has been run"):
        next(iter(simulation))


def test_two_lambdas_are_two_settings(unbalanced: Stored) -> None:
    losses = (
        lambda out, y: nn.functional.cross_entropy(out, y),
        lambda out, y: 2 * nn.functional.cross_entropy(out, y),
    )
    keys = {run(unbalanced, loss=loss).summary["key"] for loss in losses}
    assert len(keys) == 2
