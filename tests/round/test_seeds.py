"""Where random numbers come from: (seed, purpose, round, device), and nothing else."""

from itertools import chain
from typing import get_args

import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.round import evaluation
from feddyn.round.seeds import Purpose, integer

ROWS = 12


@pytest.fixture
def twins() -> Stored:
    """Three devices with the same data."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(ROWS, 4, generator=generator), torch.randint(0, 3, (ROWS,), generator=generator)
    return feddyn.Population.from_arrays(x.repeat(3, 1), y.repeat(3), torch.arange(3).repeat_interleave(ROWS))


class Watch:
    """A solver that writes down in which order it is given the samples, and how the model acts."""

    def __init__(self) -> None:
        self.orders: list[list[list[int]]] = []
        self.outputs: list[torch.Tensor] = []
        self.threads: list[int] = []
        self.training: list[bool] = []

    def __call__(self, problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        self.orders.append([step.batch.tolist() for step in work.steps(2, None, 5)])
        work.theta.copy_(problem.start)
        self.outputs.append(work.model.module(work.x).detach())
        self.threads.append(torch.get_num_threads())
        self.training.append(work.model.module.training)
        return feddyn.Solution(problem.start)


def watch(population: Stored, seed: int = 0, scramble: int = 0) -> Watch:
    """Two rounds of everybody with a network that has dropout; `scramble` is the state of the world outside."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 3))
    torch.manual_seed(scramble)
    solver = Watch()
    feddyn.simulate(model, population, feddyn.FedAvg(), solver, participation=1.0, rounds=2, seed=seed, workers=1)
    return solver


def test_every_epoch_round_device_and_seed_has_an_order_of_its_own(twins: Stored) -> None:
    """2 rounds x 3 devices x 2 epochs: twelve orders, none of them sorted, no two alike; with another seed others."""
    seen = []
    for seed in (0, 1):
        for order in watch(twins, seed).orders:
            epochs = [list(chain(*order[:3])), list(chain(*order[3:]))]
            assert all(sorted(epoch) == list(range(ROWS)) for epoch in epochs)
            seen += epochs
    assert len({tuple(epoch) for epoch in seen}) == 24
    assert list(range(ROWS)) not in seen


def test_random_layers_differ_by_round_and_device_and_not_by_the_world(twins: Stored) -> None:
    """The devices have the same data and model, so only dropout tells them apart."""
    one, other = watch(twins), watch(twins, scramble=99)
    assert all(torch.equal(a, b) for a, b in zip(one.outputs, other.outputs, strict=True))
    for i, a in enumerate(one.outputs):
        assert not any(torch.equal(a, b) for b in one.outputs[i + 1 :])
    assert not torch.equal(one.outputs[0], watch(twins, seed=1).outputs[0])


def test_devices_train_in_training_mode_with_one_thread(twins: Stored) -> None:
    seen = watch(twins)
    assert set(seen.threads) == {1}
    assert set(seen.training) == {True}


def test_models_are_evaluated_without_dropout(twins: Stored) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 3))
    run = feddyn.simulate(model, twins, feddyn.FedAvg(), Watch(), participation=1, rounds=2)
    with torch.no_grad():
        expected = float(nn.functional.cross_entropy(model.eval()(twins.x), twins.y))
    for line in run.history:
        assert line["models"]["server"]["loss"] == pytest.approx(expected, rel=1e-6)


def test_evaluation_in_pieces_is_evaluation_at_once(unbalanced: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    """260 samples in pieces of 7, the last one of 1."""
    model = nn.Linear(4, 3).double()
    sgd = feddyn.SGD(0.1, epochs=1)
    whole = feddyn.simulate(model, unbalanced, feddyn.FedAvg(), sgd, participation=1.0, rounds=1).history[0]["models"]
    monkeypatch.setattr(evaluation, "LEAST", 7)
    monkeypatch.setattr(evaluation, "MOST", 7)
    pieces = feddyn.simulate(model, unbalanced, feddyn.FedAvg(), sgd, participation=1.0, rounds=1).history[0]["models"]
    assert pieces["all"] == pytest.approx(whole["all"], rel=1e-12)


def test_large_samples_go_through_a_model_in_small_batches() -> None:
    """Images of CIFAR and MNIST, 80 characters, which are embedded, 30 features, and a sample of two parts."""
    image, digit, features = torch.zeros(1, 3, 32, 32), torch.zeros(1, 28, 28), torch.zeros(1, 30)
    characters = torch.zeros(1, 80, dtype=torch.int64)
    samples = (image, digit, characters, features, {"text": characters, "more": digit})
    assert [evaluation.batch_size(sample) for sample in samples] == [100, 334, 204, 1000, 127]


def test_purposes_have_streams_of_their_own() -> None:
    seeds = {integer(0, purpose, 1, 2) for purpose in get_args(Purpose)}
    seeds |= {integer(0, "batches", 2, 1), integer(1, "batches", 1, 2), integer(0, "batches", 1)}
    assert len(seeds) == len(get_args(Purpose)) + 3
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_mean_of_all_does_not_drift(twins: Stored) -> None:
    """500 rounds of large moves in float32: the mean that is kept up stays the mean of the latest models."""

    def jump(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        return feddyn.Solution(
            100 * torch.randn(problem.start.shape, generator=torch.Generator().manual_seed(work.seed >> 1))
        )

    plan = feddyn.Plan(
        nn.Linear(4, 3), twins, feddyn.FedDyn(1.0), jump, 1, 500, evaluation=feddyn.Evaluation(500, ["all"])
    )
    simulation = feddyn.Simulation(plan)
    for _ in simulation:
        pass
    latest = [simulation.federation.latest(k).double() for k in range(3)]
    assert torch.allclose(simulation.run.models["all"].double(), sum(latest, torch.zeros(15)) / 3, rtol=1e-6, atol=1e-6)


def test_which_means_are_weighted_by_data() -> None:
    """Those of FedAvg and of its kin; the others' authors take plain means."""
    kin = (feddyn.FedAvg(), feddyn.FedProx(0.1), feddyn.FedAvgM(0.9), feddyn.FedAdam(0.1), feddyn.FedYogi(0.1))
    dual = (feddyn.Scaffold(), feddyn.FedDyn(0.1), feddyn.FedSplit(1.0), feddyn.FedDR(0.1), feddyn.FedDC(0.1))
    others = (*dual, feddyn.FedDynM(0.1, 0.5), feddyn.AdaBest(0.1, 0.5), feddyn.FedACG(0.5))
    assert {method.weight(1.7) for method in kin} == {1.7}
    assert {method.weight(1.7) for method in others} == {1.0}
