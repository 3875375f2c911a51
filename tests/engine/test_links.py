"""Links that fail, and what must stay true all the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.engine.links import LOOK_BACK, _fractions
from feddyn.round.seeds import device_seeds

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


@pytest.mark.parametrize("stack", [1, 3])
@pytest.mark.parametrize(
    "method",
    [
        feddyn.FedDyn(0.1),
        feddyn.FedDynM(0.1, 0.5),
        feddyn.Scaffold(),
        feddyn.FedDR(0.1, 1.5),
        feddyn.FedDC(0.1),
        feddyn.FedSplit(1.0, "all"),
    ],
    ids=lambda method: type(method).__name__,
)
def test_what_the_server_holds_is_what_devices_hold_whatever_is_lost(
    unbalanced: Stored, method: feddyn.Algorithm, stack: int
) -> None:
    """After every round server[name] = 1/m SUM_k held_k[name], for every method with a state on devices."""
    links = feddyn.Links(lost=0.3, late=0.1)
    plan = feddyn.Plan(nn.Linear(4, 3).double(), unbalanced, method, SGD, 4, 12, links=links, stack=stack, seed=2)
    simulation, lost = feddyn.Simulation(plan, workers=1), 0
    for line in simulation:
        lost += len(line["lost"]) + len(line["late"])
        federation = simulation.federation
        held = [method.held(federation.state(k), unbalanced.share(k)) for k in range(10)]
        for name in held[0]:
            mean = torch.stack([each[name] for each in held]).mean(0)
            assert torch.allclose(federation.server[name], mean, rtol=0, atol=1e-13), name
    assert lost > 5


@pytest.mark.parametrize("stack", [1, 2])
def test_numbers_beside_a_model_are_kept_only_where_the_upload_counted(unbalanced: Stored, stack: int) -> None:
    """AdaBest's round of the last activity and FedDR's `seen` are those of the last upload that was counted."""
    solver, links = feddyn.SGD(0.02, epochs=1, batch_size=5), feddyn.Links(lost=0.4)
    for method, name in ((feddyn.AdaBest(0.05, 0.5), "last"), (feddyn.FedDR(0.1, 1.5), "seen")):
        plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, method, solver, 3, 5, links=links, stack=stack, seed=2)
        simulation, last = feddyn.Simulation(plan, workers=1), dict.fromkeys(range(10), 0)
        lines = list(simulation)
        assert all(line["active"] for line in lines)  # a round without uploads would not be one to AdaBest
        assert any(line["lost"] for line in lines)
        for line in lines:
            last |= dict.fromkeys(line["active"], line["round"])
        found = {k: float(simulation.federation.state(k)[name]) for k in range(10)}
        assert found == (last if name == "last" else {k: float(t > 0) for k, t in last.items()})


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


def test_the_chain_is_the_one_of_every_round_from_the_first_on() -> None:
    """Step by step: a draw below `leave` sends a device offline, one from 1 - back on brings it back, and others leave
    it as it is. With leave .004 and back .006 the last draw that matters is often older than the rounds that are drawn
    at a time: none of 64 matters with a probability of .99^64 = 0.53."""
    links, devices, rounds = feddyn.Links(leave=0.004, back=0.006), list(range(40)), 4 * LOOK_BACK
    seeds = device_seeds(3, "offline", 0, devices)
    draws = _fractions(seeds[:, None], np.arange(rounds, dtype=np.uint64))
    offline, since, oldest = np.zeros(40, dtype=bool), np.zeros(40, dtype=int), 0
    for t in range(rounds):
        decides = (draws[:, t] < 0.004) | (draws[:, t] >= 0.994)
        offline = np.where(decides, draws[:, t] < 0.004, offline)
        since = np.where(decides, 0, since + 1)
        oldest = max(oldest, int(since[offline].max(initial=0)))
        assert links.answers(3, t, devices).offline == np.flatnonzero(offline).tolist()
    assert oldest > 2 * LOOK_BACK


def test_slow_devices_get_any_part_done_whatever_becomes_of_their_uploads() -> None:
    """Of 8000 devices half the uploads are lost, and a quarter of the devices, of those that are left too, are slow:
    about 1000, whose parts are uniform on [0, 1), with a mean of 1/2 to within 0.01."""
    answers = feddyn.Links(lost=0.5, slow=0.25).answers(0, 0, range(8000))
    parts = np.array([part for part in answers.effort if part < 1])
    assert len(parts) / len(answers.counted) == pytest.approx(0.25, abs=0.04)
    assert parts.mean() == pytest.approx(0.5, abs=0.05)
    assert np.quantile(parts, [0.1, 0.9]) == pytest.approx([0.1, 0.9], abs=0.05)


@pytest.mark.parametrize(("network", "stack"), [("linear", 1), ("tanh", 1), ("tanh", 4)])
def test_the_work_of_slow_devices_is_the_whole_part_of_their_steps(
    unbalanced: Stored, network: str, stack: int
) -> None:
    """Of 20 full-batch steps an effort of e gets max(1, floor(20 e)) done, and each is n_k gradients; the record says
    how many were slow. One linear layer is trained in closed form, other models by autograd, alone or in stacks."""
    model = nn.Linear(4, 3) if network == "linear" else nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    links = feddyn.Links(slow=0.6)
    plan = feddyn.Plan(model, unbalanced, feddyn.FedAvg(), feddyn.SGD(0.01, steps=20), 10, 1, stack=stack, links=links)
    (line,) = feddyn.Simulation(plan, workers=1)
    efforts = links.answers(0, 0, range(10)).effort
    steps = [max(1, int(20 * effort)) for effort in efforts]
    assert line["gradients"] == sum(n * size for n, size in zip(steps, unbalanced.sizes, strict=True))
    assert 0 < line["slow"] == sum(effort < 1 for effort in efforts) < 10


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
