"""FedDyn's relatives and rivals on quadratic devices, in float64: FedDynM, FedDR and FedDC reach the optimum of the
pooled loss with few active devices, and the others rest where theory says that they do."""

import pytest
import torch

import feddyn
from tests.algorithms.quadratics import Quadratics

UNEQUAL, EQUAL = Quadratics(), Quadratics(equal=True)


def missed(devices: Quadratics, theta: torch.Tensor) -> float:
    """The distance from the optimum."""
    return float((theta - devices.optimum).norm())


@pytest.mark.parametrize("momentum", [0.3, 0.5, 0.8])
@pytest.mark.parametrize(("active", "rounds"), [(10, 400), (2, 3000)])
def test_feddynm_reaches_the_optimum_and_keeps_its_invariants(momentum: float, active: int, rounds: int) -> None:
    """In every round h = 1/m SUM share_k lambda_k; at last lambda_k = grad f_k(theta), s = theta and h = 0."""
    for t in (1, 2, 3, 10, rounds):
        server, states, _ = UNEQUAL.run(feddyn.FedDynM(1.0, momentum), active, t)
        assert torch.allclose(server["h"], (UNEQUAL.shares * states["lambda"]).mean(0), rtol=0, atol=1e-12)
    assert torch.allclose(states["lambda"], UNEQUAL.gradients(server["theta"]), rtol=0, atol=1e-9)
    assert torch.allclose(server["ahead"], server["theta"], rtol=0, atol=1e-9)
    assert missed(UNEQUAL, server["theta"]) <= 1e-9


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.2])
def test_feddynm_diverges_with_more_momentum_than_its_page_allows(ratio: float) -> None:
    """All devices active, losses of one curvature L, alpha = ratio * L: the root -1 of the characteristic equation is
    reached at momentum = (1 + 2 ratio) / (2 (1 - ratio)); at 1/2 it converges whatever alpha is."""
    devices, curvature = Quadratics(equal=True), 2.0
    devices.A = curvature * torch.eye(devices.size, dtype=torch.float64).expand_as(devices.A)
    threshold = (1 + 2 * ratio) / (2 * (1 - ratio))

    def left(momentum: float) -> float:
        server, *_ = devices.run(feddyn.FedDynM(ratio * curvature, momentum), devices.devices, 3000)
        return missed(devices, server["theta"])

    assert left(threshold - 0.005) < 1e-4
    assert left(threshold + 0.005) > 1e3
    assert left(0.5) < 1e-9


def test_feddynm_without_momentum_is_feddyn() -> None:
    one, *_ = UNEQUAL.run(feddyn.FedDynM(0.7, 0.0), 3, 20)
    two, *_ = UNEQUAL.run(feddyn.FedDyn(0.7), 3, 20)
    assert torch.equal(one["theta"], two["theta"])


@pytest.mark.parametrize("relax", [1.0, 1.6, 1.9])
@pytest.mark.parametrize(("active", "rounds"), [(10, 200), (2, 1500)])
def test_feddr_reaches_the_optimum_and_keeps_its_invariants(relax: float, active: int, rounds: int) -> None:
    """theta = mean of 2 x_k - y_k over the seen devices, in the beginning, when some were never active, as at the end;
    alpha_k (y_k - x_k) is 0 where a device was active once, and grad f_k(x_k) later, and so at last
    theta = mean x_k - h/alpha."""
    alpha, m = 0.7, UNEQUAL.devices
    for t in (1, 2, 3, 10, rounds):
        server, states, _ = UNEQUAL.run(feddyn.FedDR(alpha, relax), active, t)
        seen, slopes = states["seen"][:, 0] == 1, alpha / UNEQUAL.shares * (states["y"] - states["x"])
        again = slopes.norm(dim=1) > 0
        assert float(server["seen"]) * m == pytest.approx(int(seen.sum()), abs=1e-12)
        assert torch.allclose(server["theta"], (2 * states["x"] - states["y"])[seen].mean(0), rtol=0, atol=1e-13)
        assert torch.allclose(slopes[again], UNEQUAL.gradients(states["x"])[again], rtol=0, atol=1e-12)
        assert t > 1 or not again.any()
    assert again.all()
    h = (UNEQUAL.shares * slopes).sum(0) / m
    assert torch.allclose(server["theta"], states["x"].mean(0) - h / alpha, rtol=0, atol=1e-13)
    assert missed(UNEQUAL, server["theta"]) <= 1e-10


def test_feddr_is_not_held_back_by_devices_that_were_never_active() -> None:
    """One device alone, time and again, while nine are silent: the server finds that device's own optimum."""
    method, theta = feddyn.FedDR(1.0, 1.5), torch.ones(UNEQUAL.size, dtype=torch.float64)
    server, who = method.server(theta), torch.tensor([3])
    state = {name: vector[None] for name, vector in method.device(theta).items()}
    for _ in range(200):
        down = method.broadcast(server)
        found = UNEQUAL.solve(method.problem(down, state, UNEQUAL.shares[who]), who)
        state, up = method.report(down, state, UNEQUAL.shares[who], feddyn.Solution(found))
        server = method.aggregate(server, {name: vector.sum(0) for name, vector in up.items()}, 1, UNEQUAL.devices)
    assert float(UNEQUAL.gradients(server["theta"])[3].norm()) <= 1e-10


def test_feddr_with_all_devices_is_feddyn() -> None:
    """With relax = 1 and everybody active both servers average the same models, from the round after all joined."""
    joined, *_ = UNEQUAL.run(feddyn.FedDR(0.7), 10, 1)
    for rounds in (1, 2, 5, 20):
        one, *_ = UNEQUAL.run(feddyn.FedDR(0.7), 10, 1 + rounds)
        two, *_ = UNEQUAL.run(feddyn.FedDyn(0.7), 10, rounds, start=joined["theta"])
        assert torch.allclose(one["theta"], two["theta"], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("active", "rounds"), [(10, 800), (2, 3000)])
def test_feddc_reaches_the_optimum_and_keeps_its_sums(active: int, rounds: int) -> None:
    """By four gradient steps a round: D = 1/m SUM d_k and c = 1/m SUM share_k c_k, and both vanish."""
    method = feddyn.FedDC(1.0)
    for t in (1, 10, rounds):
        server, states, _ = UNEQUAL.run(method, active, t, steps=4, lr=0.05)
        assert torch.allclose(server["drift"], states["drift"].mean(0), rtol=0, atol=1e-12)
        assert torch.allclose(server["c"], (UNEQUAL.shares * states["c"]).mean(0), rtol=0, atol=1e-12)
    assert float(server["drift"].norm() + server["c"].norm()) <= 1e-10
    assert missed(UNEQUAL, server["theta"]) <= 1e-10


@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_fedacg_and_fedprox_rest_where_the_moves_cancel(beta: float) -> None:
    """x_k = W_k (b_k + beta theta) with W_k = (A_k + beta)^-1, whose mean is theta (devices are equal: FedProx weighs
    by data) where SUM W_k A_k theta = SUM W_k b_k, since 1 - beta W_k = W_k A_k."""
    weights = torch.linalg.inv(EQUAL.A + beta * torch.eye(EQUAL.size, dtype=torch.float64))
    rest = torch.linalg.solve((weights @ EQUAL.A).mean(0), torch.einsum("kij,kj->ki", weights, EQUAL.b).mean(0))
    for method in (feddyn.FedACG(0.6, beta), feddyn.FedProx(beta)):
        server, *_ = EQUAL.run(method, 10, 400)
        assert torch.allclose(server["theta"], rest, rtol=0, atol=1e-10)
    assert missed(EQUAL, rest) > 0.05


@pytest.mark.parametrize(
    "method", [feddyn.FedAvgM(0.5), feddyn.FedAdam(0.01, tau=0.1), feddyn.FedYogi(0.01, tau=0.1)], ids=repr
)
def test_server_optimisers_rest_where_fedavg_does(method: feddyn.Algorithm) -> None:
    """At the mean of the devices' own optima A_k^-1 b_k, weighted by data, where their mean move is 0."""
    own = (UNEQUAL.shares * torch.linalg.solve(UNEQUAL.A, UNEQUAL.b)).mean(0)
    server, *_ = UNEQUAL.run(method, 10, 2000)
    assert torch.allclose(server["theta"], own, rtol=0, atol=1e-6)
    assert missed(UNEQUAL, own) > 0.5


def test_fedavgm_without_momentum_is_fedavg() -> None:
    one, *_ = UNEQUAL.run(feddyn.FedAvgM(0.0), 3, 5)
    two, *_ = UNEQUAL.run(feddyn.FedAvg(), 3, 5)
    assert torch.allclose(one["theta"], two["theta"], rtol=0, atol=1e-13)


def test_adabest_rests_wherever_the_estimates_are_the_gradients() -> None:
    """At a theta of anybody's choice, with h_k = grad f_k(theta), every device stays there, and so does the server: the
    optimum is not the only resting point. From the usual start it rests at another one."""
    method, anywhere = feddyn.AdaBest(0.02, 0.5), torch.linspace(-1, 1, UNEQUAL.size, dtype=torch.float64)
    server, who = method.server(anywhere), torch.arange(UNEQUAL.devices)
    state = {"h": UNEQUAL.gradients(anywhere), "last": torch.zeros(UNEQUAL.devices, 1, dtype=torch.float64)}
    found = UNEQUAL.solve(method.problem(method.broadcast(server), state, UNEQUAL.shares), who)
    assert torch.allclose(found, anywhere.expand_as(found), rtol=0, atol=1e-12)
    after = method.aggregate(server, {"theta": found.sum(0)}, UNEQUAL.devices, UNEQUAL.devices)
    assert torch.allclose(after["theta"], anywhere, rtol=0, atol=1e-12)
    server, states, _ = UNEQUAL.run(method, 10, 2000)
    assert torch.allclose(states["h"], UNEQUAL.gradients(server["theta"]), rtol=0, atol=1e-3)
    assert missed(UNEQUAL, server["theta"]) > 0.01


def test_with_small_alpha_and_few_devices_feddyn_overshoots_and_feddr_does_not() -> None:
    """What FedDR's mean over all devices is for: 1 of 100 devices a round."""
    many = Quadratics(devices=100, size=20)
    (one, _, far), (two, _, near) = (many.run(method, 1, 600) for method in (feddyn.FedDyn(0.1), feddyn.FedDR(0.1)))
    assert far > 2 * near
    assert missed(many, one["theta"]) > 3 * missed(many, two["theta"])
