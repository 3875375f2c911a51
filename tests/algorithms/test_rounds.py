"""One round of every method by hand, and the properties that all of them share."""

from typing import Any

import pytest
import torch

import feddyn
from feddyn.algorithms import State

ALL: list[Any] = [
    pytest.param(feddyn.FedAvg(), id="fedavg"),
    pytest.param(feddyn.FedProx(0.3), id="fedprox"),
    pytest.param(feddyn.Scaffold(), id="scaffold"),
    pytest.param(feddyn.FedDyn(0.5), id="feddyn"),
    pytest.param(feddyn.FedSplit(2.0), id="fedsplit-act"),
    pytest.param(feddyn.FedSplit(2.0, "all"), id="fedsplit-all"),
]


def vector(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def test_feddyn() -> None:
    """alpha = 0.5, m = 4, device share 2, so alpha_k = 0.25; theta = (1, 2), lambda_k = (0.1, -0.1), h = (0.2, 0).

    The device found (3, 0), so theta_k - theta = (2, -2):
        lambda_k' = (0.1, -0.1) - 0.25 (2, -2)         = (-0.4, 0.4)
    With another upload of (1, 4), two active: the sum is (4, 4), and the sum minus 2 theta = (2, 0):
        h'     = (0.2, 0) - 0.5/4 (2, 0)               = (-0.05, 0)
        theta' = (2, 2) - (-0.05, 0) / 0.5             = (2.1, 2)
    """
    method = feddyn.FedDyn(0.5)
    server = {"theta": vector(1, 2), "h": vector(0.2, 0)}
    device = {"lambda": vector(0.1, -0.1)}
    down = method.broadcast(server)
    problem = method.problem(down, device, 2.0)
    assert torch.equal(problem.start, vector(1, 2))
    assert problem.tilt is not None
    assert torch.equal(problem.tilt, vector(-0.1, 0.1))
    assert problem.prox == 0.25
    assert problem.center is not None
    assert torch.equal(problem.center, vector(1, 2))
    device, up = method.report(down, device, 2.0, feddyn.Solution(vector(3, 0)))
    assert torch.allclose(device["lambda"], vector(-0.4, 0.4))
    assert set(up) == {"theta"}
    server = method.aggregate(server, {"theta": up["theta"] + vector(1, 4)}, count=2, devices=4)
    assert torch.allclose(server["h"], vector(-0.05, 0))
    assert torch.allclose(server["theta"], vector(2.1, 2))


def test_scaffold() -> None:
    """m = 4, share 2, theta = (1, 2), c = (0.4, 0), c_k = (0.1, 0.3); the device found (0, 3) on a path of length 0.5.

        tilt  = c/2 - c_k                      = (0.1, -0.3)
        c_k'  = c_k - c + (theta - found)/0.5  = (0.1, 0.3) - (0.4, 0) + (2, -2) = (1.7, -1.7)
        up    = found, and 2 (c_k' - c_k)      = (3.2, -4)
    Alone in its round:  theta' = (0, 3),  c' = (0.4, 0) + (3.2, -4)/4 = (1.2, -1)
    """
    method = feddyn.Scaffold()
    server = {"theta": vector(1, 2), "c": vector(0.4, 0)}
    device = {"c": vector(0.1, 0.3)}
    down = method.broadcast(server)
    problem = method.problem(down, device, 2.0)
    assert problem.tilt is not None
    assert torch.allclose(problem.tilt, vector(0.1, -0.3))
    assert problem.prox == 0
    device, up = method.report(down, device, 2.0, feddyn.Solution(vector(0, 3), 0.5))
    assert torch.allclose(device["c"], vector(1.7, -1.7))
    assert torch.allclose(up["c"], vector(3.2, -4))
    server = method.aggregate(server, up, count=1, devices=4)
    assert torch.allclose(server["theta"], vector(0, 3))
    assert torch.allclose(server["c"], vector(1.2, -1))


@pytest.mark.parametrize("method", [feddyn.FedAvg(), feddyn.FedProx(0.3)])
def test_means_weighted_by_data(method: feddyn.Algorithm) -> None:
    """Found (1, 0) with share 0.5 and (4, 3) with share 2.5:  (0.5 + 10, 0 + 7.5) / (0.5 + 2.5) = (3.5, 2.5)."""
    server = method.server(vector(9, 9))
    down = method.broadcast(server)
    _, one = method.report(down, {}, 0.5, feddyn.Solution(vector(1, 0)))
    _, two = method.report(down, {}, 2.5, feddyn.Solution(vector(4, 3)))
    total = {name: one[name] + two[name] for name in one}
    assert torch.allclose(method.aggregate(server, total, 2, 10)["theta"], vector(3.5, 2.5))


def test_fedprox_pulls_to_the_server() -> None:
    problem = feddyn.FedProx(0.3).problem({"theta": vector(1, 2)}, {}, 2.0)
    assert problem.prox == 0.3
    assert problem.center is not None
    assert torch.equal(problem.center, vector(1, 2))
    assert problem.tilt is None


@pytest.mark.parametrize(("mean", "theta"), [("act", (3.5, 1.5)), ("all", (1.5, 1.75))])
def test_fedsplit(mean: Any, theta: tuple[float, float]) -> None:
    """s = 2, m = 4, share 0.5, theta = (1, 2), z_k = (1.5, 2.5).

    prox    = 1/(2 * 0.5) = 1,  center = 2 theta - z_k = (0.5, 1.5)
    found (2, 1.5):  z_k' = z_k + 2 (1, -0.5) = (3.5, 1.5)
    'act', alone:  theta' = (3.5, 1.5);   'all':  theta' = (1, 2) + (2, -1)/4 = (1.5, 1.75)
    """
    method = feddyn.FedSplit(2.0, mean)
    assert torch.equal(method.device(vector(1, 2))["z"], vector(1, 2))
    server, device = method.server(vector(1, 2)), {"z": vector(1.5, 2.5)}
    down = method.broadcast(server)
    problem = method.problem(down, device, 0.5)
    assert problem.prox == 1
    assert problem.center is not None
    assert torch.equal(problem.center, vector(0.5, 1.5))
    device, up = method.report(down, device, 0.5, feddyn.Solution(vector(2, 1.5)))
    assert torch.equal(device["z"], vector(3.5, 1.5))
    assert torch.allclose(method.aggregate(server, up, 1, 4)["theta"], vector(*theta))


@pytest.mark.parametrize("method", ALL)
def test_a_stack_of_devices_is_the_same_code(method: feddyn.Algorithm) -> None:
    """Devices on axis -2 and shares as a column give what one device after another gives."""
    generator = torch.Generator().manual_seed(0)
    theta, found = (torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in (1, 3))
    shares = torch.tensor([[0.5], [1.0], [1.5]], dtype=torch.float64)
    server = method.server(theta)
    down = method.broadcast(server)
    devices = {name: value.expand(3, 5) + found.flip(0) for name, value in method.device(theta).items()}
    stacked, up = method.report(down, devices, shares, feddyn.Solution(found, 0.7))
    total = {name: value.sum(-2, keepdim=True) for name, value in up.items()}
    flat_server = {name: value[0] for name, value in server.items()}
    flat_down = method.broadcast(flat_server)
    flat_total: State = {}
    for k in range(3):
        state = {name: value[k] for name, value in devices.items()}
        share = float(shares[k])
        whole = method.problem(down, devices, shares)
        single = method.problem(flat_down, state, share)
        assert float(torch.as_tensor(whole.prox).expand(3, 1)[k]) == pytest.approx(float(single.prox))
        for field in ("tilt", "center"):
            a, b = getattr(whole, field), getattr(single, field)
            assert (a is None) == (b is None)
            assert a is None or torch.allclose(a.expand(3, 5)[k], b)
        state, one = method.report(flat_down, state, share, feddyn.Solution(found[k], 0.7))
        assert all(torch.allclose(state[name], stacked[name][k]) for name in stacked)
        flat_total = {name: flat_total.get(name, 0) + value for name, value in one.items()}
    after, flat_after = method.aggregate(server, total, 3, 7), method.aggregate(flat_server, flat_total, 3, 7)
    assert all(torch.allclose(after[name][0], flat_after[name]) for name in flat_after)


@pytest.mark.parametrize("method", ALL)
def test_states_are_values(method: feddyn.Algorithm) -> None:
    """No method changes what it was given: the same state may be used again after a lost upload."""
    theta = vector(1, 2)
    server, device = method.server(theta), method.device(theta)
    before = {name: value.clone() for state in (server, device) for name, value in state.items()}
    down = method.broadcast(server)
    method.problem(down, device, 1.5)
    _, up = method.report(down, device, 1.5, feddyn.Solution(vector(5, 6), 0.5))
    method.aggregate(server, up, 1, 3)
    assert all(torch.equal(value, before[name]) for state in (server, device) for name, value in state.items())


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, float("nan"), float("inf"), True, "big", None])
def test_bad_hyperparameters_are_refused(bad: Any) -> None:
    for make in (feddyn.FedDyn, feddyn.FedSplit):
        with pytest.raises(feddyn.InputError, match="finite number above 0"):
            make(bad)
    if bad != 0 or bad is True:
        with pytest.raises(feddyn.InputError, match="of at least 0"):
            feddyn.FedProx(bad)


def test_fedsplit_refuses_another_mean() -> None:
    with pytest.raises(feddyn.InputError, match="did you mean 'act'"):
        feddyn.FedSplit(1.0, "active")  # type: ignore[arg-type]
