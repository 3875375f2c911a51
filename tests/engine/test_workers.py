"""Work in processes: the same bits as alone, whatever happens to them."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import feddyn
from feddyn.engine.executors.forked import Forked
from tests.engine.cases import SGD, cases, outcome

NAMES = list(cases())


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    return {name: outcome({**arguments, "workers": 1}) for name, arguments in cases().items()}


@pytest.fixture(autouse=True)
def nobody_is_left_behind() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_workers_does_not_change_a_bit(name: str, workers: int, alone: dict[str, str]) -> None:
    assert outcome({**cases()[name], "workers": workers}) == alone[name]


def test_the_default_and_the_memory_do_not_change_a_bit(alone: dict[str, str]) -> None:
    name = "feddyn one by one"
    assert outcome(cases()[name]) == alone[name]
    for memory in (0, 1000, 10**9):
        assert outcome({**cases()[name], "state_memory": memory}) == alone[name]


def test_stacks_change_rounding_only(alone: dict[str, str]) -> None:
    arguments = cases()["feddyn one by one"]
    one, many = (feddyn.simulate(**{**arguments, "stack": stack}) for stack in (1, 5))
    assert torch.allclose(one.models["all"], many.models["all"], rtol=0, atol=1e-6)
    assert [line["gradients"] for line in one.history] == [line["gradients"] for line in many.history]


def test_workers_that_are_killed_are_replaced_and_nothing_is_lost(alone: dict[str, str]) -> None:
    """At every round's start one of the workers is killed, or a little later, while it trains."""
    name, dice = "images", random.Random(0)
    arguments: dict[str, Any] = {**cases()[name]}
    plan = feddyn.Plan(
        arguments["model"],
        arguments["population"],
        arguments["algorithm"],
        arguments["solver"],
        arguments["participation"],
        20,
    )
    calm = feddyn.Simulation(plan, workers=1)
    list(calm)
    stormy = feddyn.Simulation(plan, workers=2)
    killed, killers = 0, list[int]()
    for _ in stormy:
        crew = stormy.federation._executor
        assert isinstance(crew, Forked)
        victim = dice.choice(crew._processes)
        assert victim.pid is not None
        if dice.random() < 0.5:
            os.kill(victim.pid, signal.SIGKILL)
        else:
            killers.append(_kill_later(victim.pid, dice.random() * 0.02))
        killed += 1
    for killer in killers:
        os.waitpid(killer, 0)
    assert killed == 20
    assert stormy.run.history == calm.run.history
    assert all(torch.equal(stormy.run.models[k], calm.run.models[k]) for k in calm.run.models)


def _kill_later(pid: int, seconds: float) -> int:
    """From another process, as the outside world does."""
    if (killer := os.fork()) == 0:
        try:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        finally:
            os._exit(0)
    return killer


def test_a_device_that_kills_its_worker_three_times_is_named(unbalanced: feddyn.Population) -> None:
    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        if work.size == unbalanced.size(3) and work.round == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return feddyn.Solution(problem.start + 1)

    with pytest.raises(feddyn.FeddynError, match=r"training device 3 in round 2 ended its worker 3 times \(SIGKILL\)"):
        feddyn.simulate(
            nn.Linear(4, 3), unbalanced, feddyn.FedAvg(), solve, participation=[[1, 3]] * 2, rounds=2, workers=2
        )


class UnpicklableError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (KeyError("colour"), feddyn.FeddynError, "in round 1 failed: KeyError: 'colour' .test_workers.py, line"),
        (feddyn.InputError("give a number"), feddyn.InputError, "give a number"),
        (UnpicklableError(1, 2), feddyn.FeddynError, "UnpicklableError: 1 and 2"),
    ],
)
def test_errors_in_workers_come_out(
    unbalanced: feddyn.Population, error: Exception, kind: type[Exception], words: str
) -> None:
    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        raise error

    with pytest.raises(kind, match=words):
        feddyn.simulate(nn.Linear(4, 3), unbalanced, feddyn.FedAvg(), solve, participation=3, rounds=2, workers=2)


def test_of_two_devices_that_diverge_the_same_is_named_every_time(unbalanced: feddyn.Population) -> None:
    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        return feddyn.Solution(problem.start * float("nan"))

    words = set()
    for workers in (1, 2, 3):
        with pytest.raises(feddyn.DivergenceError) as caught:
            feddyn.simulate(
                nn.Linear(4, 3), unbalanced, feddyn.FedAvg(), solve, participation=4, rounds=1, workers=workers
            )
        words.add(str(caught.value))
    assert len(words) == 1


def test_interrupted_runs_end_their_workers(unbalanced: feddyn.Population, tmp_path: Path) -> None:
    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.FedAvg(), SGD, 3, 50)
    simulation = feddyn.Simulation(plan, tmp_path / "out", workers=2)
    for line in simulation:
        if line["round"] == 3:
            break
    del simulation, line
    assert len((tmp_path / "out" / "rounds.jsonl").read_text().splitlines()) == 3


def test_without_the_mean_of_all_nothing_is_kept_of_stateless_devices(unbalanced: feddyn.Population) -> None:
    evaluation = feddyn.Evaluation(models=["server"])
    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.FedAvg(), SGD, 3, 4, evaluation=evaluation)
    simulation = feddyn.Simulation(plan)
    list(simulation)
    assert simulation.federation.trainer.store.width == 0
    assert set(simulation.run.models) == {"server", "active", "best"}
    with pytest.raises(feddyn.InputError, match="the model 'all' is not known"):
        simulation.run.model("all")
