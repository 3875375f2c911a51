"""The memory of a compressed round, in vectors of the model's size."""

import gc
from typing import Any

import pytest
import torch

import feddyn
from tests.runs.test_compression import FOUR, arguments


def test_memory_does_not_grow_with_the_active_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of the model's size that are alive when a message is made, of 3 devices a round and of 9; all 9 have a
    state by then. Messages themselves are not kept either."""
    alive: list[float] = []
    encode = feddyn.Quantized.encode

    def spy(self: feddyn.Quantized, *given: Any) -> bytes:
        tensors = [one for one in gc.get_objects() if type(one) is torch.Tensor]  # and no parameters of other tests
        found = {one.data_ptr(): one.nbytes for one in tensors if one.numel() >= 83}
        alive.append(sum(found.values()) / (4 * 83))
        return encode(self, *given)

    most = {}
    for active in (3, 9):
        turns = [[(active * t + k) % 9 for k in range(active)] for t in range(6)]
        given = arguments(algorithm=feddyn.FedDyn(0.1), participation=turns, rounds=6, stack=1)
        given.pop("workers")
        simulation = feddyn.Simulation(feddyn.Plan(**given, uplink=FOUR, downlink=FOUR), workers=1)
        for line in simulation:
            if line["round"] == 5:
                gc.collect()
                alive.clear()
                monkeypatch.setattr(feddyn.Quantized, "encode", spy)
        assert len(alive) == 1 + active
        most[active] = max(alive)
        monkeypatch.undo()
    assert most[9] <= most[3] + 1
