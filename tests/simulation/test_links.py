"""Links that fail, and what must stay true all the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored

SGD = feddyn.SGD(0.1, epochs=4, batch_size=5)
EXACT = feddyn.Exact(weight_decay=0.05)


@pytest.fixture
def logistic() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 3).double()


def test_states_stay_consistent_and_feddyn_still_finds_the_optimum(unbalanced: Stored, logistic: nn.Module) -> None:
    """10 devices, 5 a round, 30% of uploads lost and 10% late: in every round h = 1/m SUM share_k lambda_k over what
    the devices kept, to 1e-10; and within 500 rounds the optimum to 1e-6."""
    evaluation, links = feddyn.Evaluation(every=500), feddyn.Links(lost=0.3, late=0.1)
    plan = feddyn.Plan(logistic, unbalanced, feddyn.FedDyn(1.0), EXACT, 5, 500, evaluation=evaluation, links=links)
    simulation = feddyn.Simulation(plan, workers=1)
    federation, seen = simulation.federation, {"lost": 0, "late": 0, "active": 0}
    for line in simulation:
        states = {k: federation.state(k)["lambda"] for k in federation.ever_active}
        mean = sum((unbalanced.share(k) * slope for k, slope in states.items()), torch.zeros(15)) / 10
        assert float((federation.server["h"] - mean).norm()) <= 1e-10
        for kind in seen:
            seen[kind] += len(line[kind])
    assert sum(seen.values()) == 2500
    assert 650 < seen["lost"] < 850
    assert 190 < seen["late"] < 310
    best = feddyn.simulate(logistic, unbalanced.pooled(), feddyn.FedAvg(), EXACT, participation=1.0, rounds=1)
    assert float((federation.server["theta"] - best.models["server"]).norm()) <= 1e-6


def test_a_round_in_which_all_is_lost_leaves_the_server_as_it_was(unbalanced: Stored) -> None:
    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.Scaffold(), SGD, 3, 4, links=feddyn.Links(lost=1.0))
    simulation = feddyn.Simulation(plan)
    before = {name: vector.clone() for name, vector in simulation.run.models.items()}
    lines = list(simulation)
    assert [line["round"] for line in lines] == [1, 2, 3, 4]
    assert all(line["active"] == [] and len(line["lost"]) == 3 for line in lines)
    assert simulation.federation.ever_active == []
    assert all(torch.equal(before[name], simulation.run.models[name]) for name in before)
    a_message = 2 * 15 * 4  # SCAFFOLD's two vectors of 15 float32 each way
    assert lines[-1]["bytes_up"] == lines[-1]["bytes_down"] == 4 * 3 * a_message
    assert lines[-1]["wasted"] == 2 * 4 * 3 * a_message
    assert lines[-1]["gradients"] == 0


def test_links_depend_neither_on_workers_nor_on_a_resume(unbalanced: Stored, tmp_path: Path) -> None:
    links = feddyn.Links(lost=0.2, late=0.1, leave=0.2, back=0.3, slow=0.5, away=[[0, 1], [2]])
    arguments: dict[str, Any] = {"participation": 6, "rounds": 9, "links": links, "seed": 3}
    torch.manual_seed(0)
    parts = (nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), SGD)
    one, two = (feddyn.simulate(*parts, **arguments, workers=workers) for workers in (1, 2))
    assert one.history == two.history
    assert any(line["offline"] for line in one.history)
    assert any(line["slow"] for line in one.history)
    for line in feddyn.Simulation(feddyn.Plan(*parts, **arguments), tmp_path / "part"):
        if line["round"] == 4:
            break
    del line
    rest = feddyn.simulate(*parts, **arguments, out=tmp_path / "part", resume=True)
    assert rest.history == one.history
    assert torch.equal(rest.models["all"], one.models["all"])
    assert {0, 1}.isdisjoint(one.history[0]["active"])
    assert 2 not in one.history[1]["active"]


def test_devices_are_away_for_stretches() -> None:
    """leave .05 and back .2: away 20% of the time, for 5 rounds in the mean."""
    links, devices = feddyn.Links(leave=0.05, back=0.2), list(range(200))
    away = np.array([np.isin(devices, links.answers(0, t, devices).offline) for t in range(200)])
    assert abs(away[50:].mean() - 0.2) < 0.02
    starts = (away[1:] & ~away[:-1]).sum()
    assert abs(away[1:].sum() / starts - 5) < 0.5
    alone = [links.answers(0, 150, [k]).offline == [k] for k in devices]
    assert alone == away[150].tolist()


@pytest.mark.parametrize("stack", [1, 4])
def test_slow_devices_take_fewer_steps_and_their_true_path_counts(unbalanced: Stored, stack: int) -> None:
    """All slow: about half the gradients. SCAFFOLD's control variates are means of the gradients met on the way, so
    their size does not depend on how many there were; divided by the whole path they would be half as large."""
    arguments: dict[str, Any] = {"participation": 10, "rounds": 1, "stack": stack}
    torch.manual_seed(0)
    parts = (nn.Linear(4, 3), unbalanced, feddyn.Scaffold(), feddyn.SGD(0.001, steps=20))
    fast = feddyn.simulate(*parts, **arguments)
    slow = feddyn.simulate(*parts, **arguments, links=feddyn.Links(slow=1.0))
    assert 0.3 < slow.history[-1]["gradients"] / fast.history[-1]["gradients"] < 0.7
    norms = [run.history[-1]["norms"]["c"] for run in (fast, slow)]
    assert norms[1] / norms[0] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ({"lost": 1.5}, "lost is a probability"),
        ({"lost": -0.1}, "lost must be"),
        ({"lost": 0.7, "late": 0.7}, "lost and late together"),
        ({"leave": 0.9, "back": 0.9}, r"leave \+ back is at most 1"),
        ({"leave": 0.1, "back": 0.0}, "back must be above 0"),
        ({"away": ["one"]}, "away must be lists of device numbers"),
    ],
)
def test_links_that_cannot_be_are_refused(links: dict[str, Any], words: str) -> None:
    with pytest.raises(feddyn.InputError, match=words):
        feddyn.Links(**links)


def test_slow_devices_need_steps(unbalanced: Stored, logistic: nn.Module) -> None:
    with pytest.raises(feddyn.InputError, match="the solver must be one in steps"):
        feddyn.Plan(logistic, unbalanced, feddyn.FedDyn(1.0), EXACT, 5, 5, links=feddyn.Links(slow=0.5))
