"""A round's bookkeeping: what is counted and measured, and that it is committed whole or leaves no trace."""

import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.engine.executors.group import SingleProcess
from feddyn.engine.grouping import groups_of
from feddyn.engine.links import Answers
from feddyn.engine.store import Store
from tests.runs.test_resume import arguments, contents


def stretch(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
    """A device of n samples moves by n in every parameter."""
    return feddyn.Solution(problem.start + work.size)


def asked(*devices: int) -> Answers:
    return Answers(list(devices), [1.0] * len(devices), [], [], [])


def test_device_norms_are_means_over_the_active_devices(unbalanced: Stored) -> None:
    """Devices 0 and 1 of ten have 10 and 40 of 260 samples, so shares of 10/26 and 40/26; with d = 15 parameters they
    drift by 10 sqrt(15) and 40 sqrt(15), 25 sqrt(15) in the mean. FedDyn's lambda_k = -alpha / share_k * drift has the
    same norm on both: 0.1 * 26 sqrt(15)."""
    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), stretch, [[0, 1]], 1)
    (line,) = feddyn.Simulation(plan, workers=1)
    assert line["devices"] == pytest.approx({"drift": 25 * 15**0.5, "lambda": 2.6 * 15**0.5})


def test_the_objective_is_the_loss_and_half_the_weight_decay_times_the_square(unbalanced: Stored) -> None:
    """Started at (2, ..., 2), whose square is 15 * 4 = 60: with a weight decay of 0.1 the objective is 3 above the
    loss. One step of length 1e-9 moves nothing."""
    model = nn.Linear(4, 3).double()
    nn.init.constant_(model.weight, 2.0)
    nn.init.constant_(model.bias, 2.0)
    solver = feddyn.SGD(1e-9, steps=1, weight_decay=0.1)
    run = feddyn.simulate(model, unbalanced, feddyn.FedAvg(), solver, participation=1.0, rounds=1)
    for figures in run.history[0]["models"].values():
        assert figures["objective"] - figures["loss"] == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize("stack", [1, 4])
def test_gradients_are_counted_sample_by_sample(unbalanced: Stored, stack: int) -> None:
    """Two passes in batches of 4 over 10 + 40 + 15 samples are 130 gradients, whatever is left for the last batch."""
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    solver = feddyn.SGD(0.01, epochs=2, batch_size=4)
    plan = feddyn.Plan(model, unbalanced, feddyn.FedAvg(), solver, [[0, 1, 2]], 1, stack=stack)
    (line,) = feddyn.Simulation(plan, workers=1)
    assert line["gradients"] == 130


def test_only_what_was_in_vain_is_wasted(unbalanced: Stored) -> None:
    """FedDyn sends 15 float32 each way, 60 bytes: for everybody who is asked, and in vain for the lost and the late."""
    solver, links = feddyn.SGD(0.01, steps=1), feddyn.Links(lost=0.3, late=0.2)
    run = feddyn.simulate(
        nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), solver, participation=1.0, rounds=5, links=links
    )
    lost, late = (sum(len(line[kind]) for line in run.history) for kind in ("lost", "late"))
    assert lost > 5
    assert late > 2
    last = run.history[-1]
    assert (last["bytes_up"], last["bytes_down"], last["wasted"]) == (3000, 3000, 120 * (lost + late))


def no_slot_is_lost(store: Store) -> bool:
    """Every slot that was ever given out is a device's own, or free, and only once."""
    return sorted([*store.slots.values(), *store._free]) == list(range(store._next))


def test_rounds_that_fail_give_their_slots_back(unbalanced: Stored) -> None:
    """Three devices, of which the second fails, ten times; then a round that does not."""
    failing = True

    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        if failing and work.size == unbalanced.size(1):
            raise KeyError("device 1")
        return feddyn.Solution(problem.start + 1)

    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), solve, [[0, 1, 2]], 1)
    federation = feddyn.Simulation(plan).federation
    for _ in range(10):
        words = r"training device 1 \(\d+ samples\) in round 1 failed: KeyError: 'device 1' \(test_federation.py, line"
        with pytest.raises(feddyn.FeddynError, match=words):
            federation.step(0, asked(0, 1, 2))
        assert no_slot_is_lost(federation.store)
    failing = False
    federation.step(0, asked(0, 1, 2))
    assert no_slot_is_lost(federation.store)
    assert sorted(federation.store.slots.values()) == [0, 1, 2]


def test_states_that_came_from_elsewhere_give_their_slots_back(
    unbalanced: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the states of all devices came from other processes in every round."""

    def fetch(_: object, store: Store, groups: Sequence[Sequence[int]], owners: Sequence[int]) -> dict[int, int]:
        devices = [k for group in groups for k in group]
        slots = store.stage(devices)
        store.write(slots, store.named(store.read([None] * len(slots))))
        return dict(zip(devices, slots, strict=True))

    monkeypatch.setattr(SingleProcess, "fetch", fetch)
    plan = feddyn.Plan(nn.Linear(4, 3), unbalanced, feddyn.FedDyn(0.1), stretch, 3, 9)
    federation = feddyn.Simulation(plan).federation
    for round in range(6):
        federation.step(round, asked(round, round + 1, round + 2))
        assert no_slot_is_lost(federation.store)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_commit_waits_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: signal.Signals
) -> None:
    """It arrives in round 3 when the first of five devices has its new state and the others have not. The run ends by
    it, though only after the round; saved there and resumed, it ends with the same bits as one that nothing disturbs.
    """
    feddyn.simulate(**arguments(), out=tmp_path / "calm", workers=1)
    commit, calls = Store.commit, 0

    def disturbed(store: Store, devices: Iterable[int], fresh: Iterable[int]) -> None:
        nonlocal calls
        commit(store, devices, fresh)
        calls += 1
        if calls == 2 * 5 + 1:
            signal.raise_signal(kind)

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(kind, end)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "commit", disturbed)
            with pytest.raises(KeyboardInterrupt):
                feddyn.simulate(**arguments(), out=tmp_path / "out", workers=1)
    finally:
        signal.signal(kind, before)
    assert calls == 3 * 5
    feddyn.simulate(**arguments(), out=tmp_path / "out", workers=1, resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "calm")


def test_groups_have_the_largest_devices_first_and_equal_numbers() -> None:
    """Seven devices in groups of at most three: 2, 2 and 3 of them, by falling size, equal ones by their number."""
    sizes = [5, 9, 1, 9, 7, 2, 3]
    assert groups_of([10, 11, 12, 13, 14, 15, 16], sizes, 3) == [[11, 13], [14, 10], [16, 15, 12]]
