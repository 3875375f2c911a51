"""Device states in memory and on disk."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from feddyn.engine.store import Store
from feddyn.errors import FeddynError, InputError

WIDTH = 7
ROW = 4 * WIDTH


def make(budget: int) -> Store:
    initial = {"state.lambda": torch.zeros(4), "latest": torch.arange(3.0)}
    return Store(initial, devices=20, budget=budget)


def put(store: Store, devices: Iterable[int], value: float) -> None:
    """A round in which these devices get states full of a number."""
    devices = list(devices)
    fresh = store.stage(devices)
    rows = torch.full((len(devices), 1), value) + torch.tensor(devices)[:, None] / 100
    store.write(fresh, {"latest": rows.expand(-1, 3), "state.lambda": rows.expand(-1, 4)})
    store.commit(devices, fresh)


@pytest.mark.parametrize("budget", [0, 3 * ROW, 10 * ROW + 5, 10**6])
def test_states_are_kept_whatever_the_budget(budget: int) -> None:
    store = make(budget)
    assert torch.equal(store.state(5)["latest"], torch.arange(3.0))
    for round in range(30):
        put(store, [(3 * round + i) % 20 for i in range(6)], round)
    last = {(3 * round + i) % 20: round for round in range(30) for i in range(6)}
    for device, round in last.items():
        kept = store.state(device)
        assert torch.allclose(kept["state.lambda"], torch.full((4,), round + device / 100))
        assert torch.allclose(kept["latest"], torch.full((3,), round + device / 100))
    together = store.read([store.slots[k] for k in range(20)] + [None])
    assert torch.equal(together[-1], torch.tensor([0, 0, 0, 0, 0, 1, 2.0]))
    assert torch.allclose(together[:-1, 0], torch.tensor([last[k] + k / 100 for k in range(20)]))


def test_a_round_that_is_not_committed_changes_nothing() -> None:
    store = make(2 * ROW)
    put(store, [1, 2, 3], 1.0)
    fresh = store.stage([2, 9])
    store.write(fresh, {"latest": torch.ones(2, 3), "state.lambda": torch.ones(2, 4)})
    store.release(fresh)
    assert torch.allclose(store.state(2)["latest"], torch.tensor(1.02))
    assert torch.equal(store.state(9)["latest"], torch.arange(3.0))
    assert 9 not in store


def test_slots_are_used_again() -> None:
    """300 rounds of the same four devices need the slots of two rounds."""
    store = make(10**6)
    for round in range(300):
        put(store, [0, 1, 2, 3], round)
    assert max(store.slots.values()) < 8
    assert store.changed == {0, 1, 2, 3}
    store.forget(2)
    assert 2 not in store
    assert store.changed == {0, 1, 3}  # what is forgotten cannot be saved
    assert torch.equal(store.state(2)["latest"], torch.arange(3.0))


def test_a_full_disk_is_one_sentence_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(0)
    put(store, [1], 1.0)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    fresh = store.stage([1])
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(FeddynError, match=r"no longer fit on the disk .*No space left.*TMPDIR"):
            store.write(fresh, {"latest": torch.ones(1, 3), "state.lambda": torch.ones(1, 4)})
    store.release(fresh)
    assert torch.allclose(store.state(1)["latest"], torch.tensor(1.01))


def test_a_directory_that_cannot_be_written_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nowhere cannot be written to"):
        make(0)


def test_a_store_that_is_cleared_holds_nothing() -> None:
    store = make(2 * ROW)
    put(store, range(10), 1.0)
    store.clear()
    assert torch.equal(store.state(3)["latest"], torch.arange(3.0))
    assert store.slots == {}


def test_a_method_without_states_needs_no_room() -> None:
    store = Store({}, devices=10**9, budget=0)
    fresh = store.stage([5])
    store.write(fresh, {"latest": torch.ones(3)})
    store.commit([5], fresh)
    assert store.state(5) == {}
