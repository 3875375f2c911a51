"""Devices that join a federation: the server's state goes on to hold all of theirs."""

import pytest
import torch

import feddyn
from feddyn.algorithms import Census, Scalar, State
from tests.algorithms.test_rounds import ALL

SIZES = [10, 40, 25, 5, 90]
START = 3
"""How many devices there are at first."""


def rounds(method: feddyn.Algorithm, server: State, devices: list[State], generator: torch.Generator) -> State:
    """Three rounds in which some devices find something at random; device states are changed in place."""
    sizes = SIZES[: len(devices)]
    for _ in range(3):
        active = torch.randperm(len(devices), generator=generator)[:2].tolist()
        down, total = method.broadcast(server), State()
        for k in active:
            share = sizes[k] * len(sizes) / sum(sizes)
            found = torch.randn(server["theta"].shape, generator=generator, dtype=torch.float64)
            devices[k], up = method.report(down, devices[k], share, feddyn.Solution(found, 0.7))
            total = {name: total.get(name, 0) + vector for name, vector in up.items()}
        server = method.aggregate(server, total, len(active), len(devices))
    return server


def require_held(method: feddyn.Algorithm, server: State, devices: list[State]) -> None:
    """server[name] = 1/m SUM_k held_k[name], computed from the devices' states."""
    sizes = SIZES[: len(devices)]
    for name in method.held(devices[0], 1.0):
        shares = [size * len(sizes) / sum(sizes) for size in sizes]
        held = [method.held(device, share)[name] for device, share in zip(devices, shares, strict=True)]
        assert torch.allclose(server[name], torch.stack(held).mean(0), rtol=0, atol=1e-13), name


@pytest.mark.parametrize("method", ALL)
def test_the_server_holds_its_devices_states_also_when_others_join(method: feddyn.Algorithm) -> None:
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(4, generator=generator, dtype=torch.float64)
    server, devices = method.server(theta), [method.device(theta) for _ in range(START)]
    server = rounds(method, server, devices, generator)
    require_held(method, server, devices)
    devices += [method.device(server["theta"]) for _ in SIZES[START:]]
    before, after = Census(START, sum(SIZES[:START])), Census(len(SIZES), sum(SIZES))
    kept = {name: vector.clone() for name, vector in server.items()}
    admitted = method.admit(server, before, after)
    assert all(torch.equal(server[name], kept[name]) for name in kept)
    assert torch.equal(admitted["theta"], server["theta"])
    require_held(method, admitted, devices)
    require_held(method, rounds(method, admitted, devices, generator), devices)


def test_feddyn_by_hand() -> None:
    """Two devices of 10 and 30 samples, lambda = (1, 4): h = (10 * 1 + 30 * 4) / 40 = 3.25. A third of 60 joins:
    h = (10 * 1 + 30 * 4 + 60 * 0) / 100 = 1.3."""
    server = {"theta": torch.zeros(1), "h": torch.tensor([3.25])}
    joined = feddyn.FedDyn(0.1).admit(server, Census(2, 40), Census(3, 100))
    assert float(joined["h"]) == pytest.approx(1.3)


class Own(feddyn.Algorithm):
    """A method of somebody's own, whose devices keep something."""

    def server(self, theta: torch.Tensor) -> State:
        return {"theta": theta}

    def device(self, theta: torch.Tensor) -> State:
        return {"mine": theta}

    def broadcast(self, server: State) -> State:
        return server

    def problem(self, down: State, device: State, share: Scalar) -> feddyn.Problem:
        return feddyn.Problem(down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: feddyn.Solution) -> tuple[State, State]:
        return device, {"theta": found.theta}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return {"theta": total["theta"] / count}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0


def test_a_method_that_does_not_say_how_is_refused() -> None:
    with pytest.raises(feddyn.InputError, match="Own: devices cannot join"):
        Own().admit({"theta": torch.zeros(1)}, Census(1, 1), Census(2, 2))
    with pytest.raises(feddyn.InputError, match="give it `held`"):
        Own().held({"mine": torch.zeros(1)}, 1.0)
