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
    pytest.param(feddyn.FedDynM(0.5, 0.8), id="feddynm"),
    pytest.param(feddyn.FedSplit(2.0), id="fedsplit-act"),
    pytest.param(feddyn.FedSplit(2.0, "all"), id="fedsplit-all"),
    pytest.param(feddyn.FedDR(0.5, 1.5), id="feddr"),
    pytest.param(feddyn.FedDC(0.5), id="feddc"),
    pytest.param(feddyn.AdaBest(0.5, 0.9), id="adabest"),
    pytest.param(feddyn.FedACG(0.8, 0.1), id="fedacg"),
    pytest.param(feddyn.FedAvgM(0.8, 0.5), id="fedavgm"),
    pytest.param(feddyn.FedAdam(0.1), id="fedadam"),
    pytest.param(feddyn.FedYogi(0.1), id="fedyogi"),
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


def test_feddynm() -> None:
    """FedDyn's round above, with s = (1, 2) in the place of theta; the server's own model was (0, 1), and momentum is
    0.5: theta' = (2.1, 2) as there, and s' = (2.1, 2) + 0.5 ((2.1, 2) - (0, 1)) = (3.15, 2.5)."""
    method = feddyn.FedDynM(0.5, 0.5)
    server = {"theta": vector(0, 1), "ahead": vector(1, 2), "h": vector(0.2, 0)}
    down, device = method.broadcast(server), {"lambda": vector(0.1, -0.1)}
    assert set(down) == {"ahead"}
    problem = method.problem(down, device, 2.0)
    assert problem.tilt is not None
    assert problem.center is not None
    assert torch.equal(problem.start, vector(1, 2))
    assert torch.equal(problem.center, vector(1, 2))
    assert torch.equal(problem.tilt, vector(-0.1, 0.1))
    assert problem.prox == 0.25
    device, up = method.report(down, device, 2.0, feddyn.Solution(vector(3, 0)))
    assert torch.allclose(device["lambda"], vector(-0.4, 0.4))
    server = method.aggregate(server, {"theta": up["theta"] + vector(1, 4)}, count=2, devices=4)
    assert torch.allclose(server["h"], vector(-0.05, 0))
    assert torch.allclose(server["theta"], vector(2.1, 2))
    assert torch.allclose(server["ahead"], vector(3.15, 2.5))
    begun = method.server(vector(3, 4))
    assert torch.equal(begun["ahead"], vector(3, 4))
    assert torch.equal(begun["h"], vector(0, 0))


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


def test_feddr() -> None:
    """alpha = 0.5, relax = 1.5, share 2, so alpha_k = 0.25; theta = (1, 2) is the mean over 3 seen devices of 10, so
    that the sum of their reflections is (3, 6), and the mean over 10 is (0.3, 0.6).

    A device that was active before, with x_k = (1, 1) and y_k = (0, 2):
        y_k' = (0, 2) + 1.5 ((1, 2) - (1, 1))          = (0, 3.5)
    found (2, 3):  2 x - y was (2, 0) and is (4, 6) - (0, 3.5) = (4, 2.5); up = (2, 2.5), and nobody joined.
    A new one looks around theta = (1, 2), and joins with what it found, (3, 0), as x_k and y_k:  up = (3, 0).
    The sum is (5, 2.5). SUM (2 x - y) was (3, 6), is (8, 8.5), over 4 devices: theta' = (2, 2.125)
    """
    method = feddyn.FedDR(0.5, 1.5)
    server = {"theta": vector(1, 2), "reflected": vector(0.3, 0.6), "seen": vector(0.3)}
    down = method.broadcast(server)
    old, new = {"x": vector(1, 1), "y": vector(0, 2), "seen": vector(1)}, method.device(vector(7, 7))
    for device, center in ((old, vector(0, 3.5)), (new, vector(1, 2))):
        problem = method.problem(down, device, 2.0)
        assert problem.prox == 0.25
        assert problem.center is not None
        assert torch.equal(problem.center, center)
        assert torch.equal(problem.start, vector(1, 2))
        assert problem.tilt is None
    old, one = method.report(down, old, 2.0, feddyn.Solution(vector(2, 3)))
    new, two = method.report(down, new, 2.0, feddyn.Solution(vector(3, 0)))
    assert torch.equal(old["y"], vector(0, 3.5))
    assert torch.equal(new["x"], vector(3, 0))
    assert torch.equal(new["y"], vector(3, 0))
    assert torch.equal(new["seen"], vector(1))
    assert torch.equal(one["reflected"], vector(2, 2.5))
    assert torch.equal(two["reflected"], vector(3, 0))
    server = method.aggregate(server, {name: one[name] + two[name] for name in one}, count=2, devices=10)
    assert torch.allclose(server["seen"], vector(0.4))
    assert torch.allclose(server["reflected"], vector(0.8, 0.85))
    assert torch.allclose(server["theta"], vector(2, 2.125))


def test_feddc() -> None:
    """The authors' step, written out. alpha = 0.5, m = 4, share 2; theta = (1, 2), D = (0.5, 0), c = (0.4, 0);
    d_k = (1, -1), c_k = (0.1, 0.3); the device found (0, 3) on a path of length 0.5, so it moved by (-1, 1).

        tilt   = c/2 - c_k = (0.1, -0.3),  prox = 0.25,  center = theta - d_k = (0, 3)
        d_k'   = (0, 0)
        c_k'   = c_k - c/2 + (2, -2)                    = (1.9, -1.7),  up 2 (c_k' - c_k) = (3.6, -4)
    Alone:  D' = (0.5, 0) + (-1, 1)/4 = (0.25, 0.25),  c' = (0.4, 0) + (3.6, -4)/4 = (1.3, -1),
        theta' = (0, 3) + D' = (0.25, 3.25)
    """
    method = feddyn.FedDC(0.5)
    server = {"theta": vector(1, 2), "drift": vector(0.5, 0), "c": vector(0.4, 0)}
    device = {"drift": vector(1, -1), "c": vector(0.1, 0.3)}
    down = method.broadcast(server)
    problem = method.problem(down, device, 2.0)
    assert problem.tilt is not None
    assert torch.allclose(problem.tilt, vector(0.1, -0.3))
    assert problem.prox == 0.25
    assert problem.center is not None
    assert torch.equal(problem.center, vector(0, 3))
    device, up = method.report(down, device, 2.0, feddyn.Solution(vector(0, 3), 0.5))
    assert torch.equal(device["drift"], vector(0, 0))
    assert torch.allclose(device["c"], vector(1.9, -1.7))
    assert torch.allclose(up["c"], vector(3.6, -4))
    server = method.aggregate(server, up, count=1, devices=4)
    assert torch.allclose(server["drift"], vector(0.25, 0.25))
    assert torch.allclose(server["c"], vector(1.3, -1))
    assert torch.allclose(server["theta"], vector(0.25, 3.25))


def test_adabest() -> None:
    """mu = 0.5, beta = 0.8, share 2; round 7, theta = (1, 2), the last mean (0, 1). The device was active in round 3,
    with h_k = (4, 8); it found (3, 0).

        tilt = (-4, -8);  h_k' = (4, 8)/(7 - 3) + 0.25 (-2, 2) = (0.5, 2.5)
    One that was never active, in the same place:  h_k' = 0 + (-0.5, 0.5).
    Both together:  mean = (3, 0);  theta' = (3, 0) - 0.8 ((0, 1) - (3, 0)) = (5.4, -0.8);  round 8
    """
    method = feddyn.AdaBest(0.5, 0.8)
    server = {"theta": vector(1, 2), "mean": vector(0, 1), "round": vector(7)}
    device, down = {"h": vector(4, 8), "last": vector(3)}, method.broadcast(server)
    problem = method.problem(down, device, 2.0)
    assert problem.tilt is not None
    assert torch.equal(problem.tilt, vector(-4, -8))
    assert problem.prox == 0
    device, one = method.report(down, device, 2.0, feddyn.Solution(vector(3, 0)))
    other, two = method.report(down, method.device(vector(9, 9)), 2.0, feddyn.Solution(vector(3, 0)))
    assert torch.equal(device["h"], vector(0.5, 2.5))
    assert torch.equal(other["h"], vector(-0.5, 0.5))
    assert torch.equal(device["last"], vector(7))
    server = method.aggregate(server, {"theta": one["theta"] + two["theta"]}, count=2, devices=9)
    assert torch.equal(server["mean"], vector(3, 0))
    assert torch.allclose(server["theta"], vector(5.4, -0.8))
    assert torch.equal(server["round"], vector(8))


def test_fedacg() -> None:
    """momentum 0.8, beta 0.1; theta = (1, 2), v = (0.5, -0.5): the devices get s = (1.4, 1.6).

    They found (3, 1) and (2, 2):  theta' = (2.5, 1.5),  v' = 0.8 v + (2.5, 1.5) - s = (0.4, -0.4) + (1.1, -0.1)
    = (1.5, -0.5)
    """
    method = feddyn.FedACG(0.8, 0.1)
    server = {"theta": vector(1, 2), "v": vector(0.5, -0.5)}
    down = method.broadcast(server)
    problem = method.problem(down, {}, 2.0)
    assert problem.center is not None
    assert torch.allclose(problem.start, vector(1.4, 1.6))
    assert torch.equal(problem.start, problem.center)
    assert problem.prox == 0.1
    ups = [method.report(down, {}, 2.0, feddyn.Solution(found))[1] for found in (vector(3, 1), vector(2, 2))]
    server = method.aggregate(server, {"theta": ups[0]["theta"] + ups[1]["theta"]}, count=2, devices=9)
    assert torch.allclose(server["theta"], vector(2.5, 1.5))
    assert torch.allclose(server["v"], vector(1.5, -0.5))


@pytest.mark.parametrize(
    ("method", "state", "after"),
    [
        # v' = 0.5 (1, 0) + (2, -1) = (2.5, -1), and theta' = theta + 0.1 v'
        (feddyn.FedAvgM(0.5, 0.1), {"v": (1, 0)}, {"theta": (1.25, 1.9), "v": (2.5, -1)}),
        # u' = 0.5 (1, 0) + 0.5 (2, -1) = (1.5, -0.5), v' = 0.75 (0, 4) + 0.25 (4, 1) = (1, 3.25)
        (
            feddyn.FedAdam(0.1, 0.5, 0.75, 0.5),
            {"u": (1, 0), "v": (0, 4)},
            {"theta": (1 + 0.15 / 1.5, 2 - 0.05 / (3.25**0.5 + 0.5)), "u": (1.5, -0.5), "v": (1, 3.25)},
        ),
        # v' = (0 + 0.25 * 4, 4 - 0.25 * 1) = (1, 3.75)
        (
            feddyn.FedYogi(0.1, 0.5, 0.75, 0.5),
            {"u": (1, 0), "v": (0, 4)},
            {"theta": (1 + 0.15 / 1.5, 2 - 0.05 / (3.75**0.5 + 0.5)), "u": (1.5, -0.5), "v": (1, 3.75)},
        ),
    ],
    ids=["fedavgm", "fedadam", "fedyogi"],
)
def test_server_optimisers(method: feddyn.Algorithm, state: dict[str, Any], after: dict[str, Any]) -> None:
    """theta = (1, 2); found (1, 0) with share 0.5 and (3.4, 1.2) with share 2.5, whose mean weighted by data is
    (0.5 + 8.5, 0 + 3) / 3 = (3, 1): the mean move is (2, -1)."""
    server = {"theta": vector(1, 2)} | {name: vector(*numbers) for name, numbers in state.items()}
    down = method.broadcast(server)
    _, one = method.report(down, {}, 0.5, feddyn.Solution(vector(1, 0)))
    _, two = method.report(down, {}, 2.5, feddyn.Solution(vector(3.4, 1.2)))
    found = method.aggregate(server, {name: one[name] + two[name] for name in one}, 2, 10)
    assert set(found) == set(method.server(vector(1, 2))) == set(after)
    for name, numbers in after.items():
        assert torch.allclose(found[name], vector(*numbers)), name


def test_server_optimisers_begin_with_zeros_and_tau_squared() -> None:
    for method in (feddyn.FedAdam(0.1, tau=0.5), feddyn.FedYogi(0.1, tau=0.5)):
        server = method.server(vector(1, 2))
        assert torch.equal(server["u"], vector(0, 0))
        assert torch.equal(server["v"], vector(0.25, 0.25))
    for momentum in (feddyn.FedAvgM(0.9), feddyn.FedACG(0.9)):
        assert torch.equal(momentum.server(vector(1, 2))["v"], vector(0, 0))


def test_adabest_begins_before_its_first_round() -> None:
    """The mean of round 0 is theta^0 and the first round is 1, so that a device that is active in it has been away for
    one round: h_k = 0 / 1 + mu (theta - x_k)."""
    method = feddyn.AdaBest(0.5, 0.9)
    server, device = method.server(vector(1, 2)), method.device(vector(1, 2))
    assert torch.equal(server["mean"], vector(1, 2))
    assert torch.equal(method.broadcast(server)["theta"], vector(1, 2))
    assert torch.equal(method.broadcast(server)["round"], vector(1))
    problem = method.problem(method.broadcast(server), device, 1.0)
    assert torch.equal(problem.start, vector(1, 2))
    assert problem.tilt is not None
    assert torch.equal(problem.tilt, vector(0, 0))
    after, _ = method.report(method.broadcast(server), device, 1.0, feddyn.Solution(vector(0, 0)))
    assert torch.equal(after["h"], vector(0.5, 1))


@pytest.mark.parametrize("method", ALL)
def test_a_stack_of_devices_is_the_same_code(method: feddyn.Algorithm) -> None:
    """Devices on axis -2 and shares as a column give what one device after another gives."""
    generator = torch.Generator().manual_seed(0)
    theta, found = (torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in (1, 3))
    shares = torch.tensor([[0.5], [1.0], [1.5]], dtype=torch.float64)
    server = method.server(theta)
    down = method.broadcast(server)
    moved, state = found.flip(0), method.device(theta)
    devices = {name: value.expand(3, -1) + moved[:, : value.shape[-1]] for name, value in state.items()}
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
    for make in (feddyn.FedDyn, feddyn.FedSplit, feddyn.FedDR, feddyn.FedDC, feddyn.FedAdam, feddyn.FedYogi):
        with pytest.raises(feddyn.InputError, match="finite number above 0"):
            make(bad)
    if bad != 0 or bad is True:
        with pytest.raises(feddyn.InputError, match="of at least 0"):
            feddyn.FedProx(bad)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: feddyn.FedDR(1.0, 2.0), "FedDR: relax must be a finite number above 0 and below 2, not 2.0"),
        (lambda: feddyn.FedACG(1.0), "FedACG: momentum must be a finite number of at least 0 and below 1, not 1.0"),
        (lambda: feddyn.FedDynM(0.1, 1.0), "FedDynM: momentum must be a finite number of at least 0 and below 1"),
        (lambda: feddyn.FedAvgM(1.5), "FedAvgM: momentum must be a finite number of at least 0 and below 1"),
        (lambda: feddyn.FedAdam(0.1, beta2=1.0), "FedAdam: beta2 must be a finite number of at least 0 and below 1"),
        (lambda: feddyn.FedYogi(0.1, beta1=-0.5), "FedYogi: beta1 must be a finite number of at least 0 and below 1"),
        (lambda: feddyn.AdaBest(0.1, torch.tensor([0.5, 1.0])), "AdaBest: beta must be a finite number"),
    ],
)
def test_hyperparameters_with_an_upper_end(make: Any, words: str) -> None:
    with pytest.raises(feddyn.InputError, match=words):
        make()


def test_feddr_and_feddyn_hand_out_the_same_problem() -> None:
    """With relax = 1 and lambda_k = alpha_k (y_k - x_k), alpha_k/2 ||x - y_k'||^2 and
    -<lambda_k, x> + alpha_k/2 ||x - theta||^2 have the same slope everywhere."""
    down, x, y, at, slope = {"theta": vector(1, 2)}, vector(3, 1), vector(2, 5), vector(-1, 4), vector(0, 0)
    one = feddyn.FedDR(0.5).problem(down, {"x": x, "y": y, "seen": vector(1)}, 2.0)
    two = feddyn.FedDyn(0.5).problem(down, {"lambda": 0.25 * (y - x)}, 2.0)
    assert torch.allclose(one.penalised_slope(slope, at), two.penalised_slope(slope, at))


def test_fedsplit_refuses_another_mean() -> None:
    with pytest.raises(feddyn.InputError, match="did you mean 'act'"):
        feddyn.FedSplit(1.0, "active")  # type: ignore[arg-type]
