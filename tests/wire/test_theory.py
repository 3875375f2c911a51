"""With exact solutions every compressor leaves the optimum where it is, and the wrong ways do not.

Eight unequal devices with losses of their own; the rule is that both sides use what was really sent, up and down.
"""

from dataclasses import dataclass
from typing import Any, final

import pytest
import torch

import feddyn
from feddyn.algorithms import Solution
from feddyn.theory.problems import Logistic, Losses, Quadratics
from feddyn.wire import Compressor, Quantized, RandomK, Sign, TopK
from feddyn.wire.base import Numbers, Sizes
from feddyn.wire.digits import Reader
from feddyn.wire.uplink import Uplink
from tests.wire.laboratory import Outcome, Way, run

PROBLEMS: dict[str, Losses] = {
    "quadratics": Quadratics(8, 12, mu=0.3, spread=1.0, seed=0, unequal=True),
    "logistic": Logistic(8, 6, decay=0.2, spread=1.0, seed=0, unequal=True),
}
COMPRESSORS: list[Any] = [
    pytest.param(Quantized(8), id="8 bits"),
    pytest.param(Quantized(8, rounding="stochastic"), id="8 bits, stochastic"),
    pytest.param(Quantized(4), id="4 bits"),
    pytest.param(Quantized(4, "block", "stochastic", block=5), id="4 bits, stochastic, blocks"),
    pytest.param(Quantized(4, "model"), id="4 bits, model"),
    pytest.param(Quantized(2), id="2 bits"),
    pytest.param(Quantized(2, "model"), id="2 bits, model"),
    pytest.param(Sign(), id="sign"),
    pytest.param(Sign("model"), id="sign, model"),
    pytest.param(TopK(0.1), id="top 10%"),
    pytest.param(TopK(0.2, Quantized(4)), id="top 20% of 4 bits"),
    pytest.param(RandomK(0.3), id="random 30%"),
    pytest.param(RandomK(0.3, Quantized(4)), id="random 30% of 4 bits"),
]
ROUNDS = pytest.mark.parametrize(
    ("active", "lost", "rounds"),
    [(None, 0.0, 400), (None, 0.3, 400), (4, 0.0, 600), (4, 0.3, 800)],
    ids=["all", "all, 30% lost", "half", "half, 30% lost"],
)


def exact(found: Outcome) -> bool:
    """The optimum to 1e-8, and in every round h = 1/m SUM share_k lambda_k to 1e-12."""
    return found.error <= 1e-8 and found.invariant <= 1e-12


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("compressor", COMPRESSORS)
@ROUNDS
def test_feddyn_finds_the_optimum_and_keeps_its_invariant(
    problem: str, compressor: Compressor, active: int | None, lost: float, rounds: int
) -> None:
    """Uploads and downloads are compressed."""
    assert exact(run(PROBLEMS[problem], feddyn.FedDyn(1.0), rounds, compressor, compressor, active, lost))


@pytest.mark.parametrize(
    "method",
    [feddyn.FedDynM(1.0, 0.5), feddyn.FedDR(1.0, 1.5), feddyn.FedSplit(1.0, "all")],
    ids=lambda method: type(method).__name__,
)
@pytest.mark.parametrize("compressor", [Quantized(4), TopK(0.2, Quantized(4))], ids=["4 bits", "top 20% of 4 bits"])
def test_other_exact_methods_find_it_too(method: feddyn.Algorithm, compressor: Compressor) -> None:
    assert run(PROBLEMS["quadratics"], method, 600, compressor, compressor, 4, 0.3).error <= 1e-8


def test_feddc_finds_it_with_compressed_uploads() -> None:
    method = feddyn.FedDC(1.0)
    assert run(PROBLEMS["quadratics"], method, 300, TopK(0.2, Quantized(4)), active=6, lr=0.1).error <= 1e-8


@pytest.mark.parametrize("compressor", [Quantized(4), Sign(), TopK(0.1)], ids=["4 bits", "sign", "top 10%"])
def test_scaffold_finds_it_as_scallion(compressor: Compressor) -> None:
    """Measured from theta, and not from theta - path c, the top 10% would still be 2.6e-6 away after five times as many
    rounds: what is sent would vanish with c only."""
    assert run(PROBLEMS["quadratics"], feddyn.Scaffold(), 700, compressor, None, 4, 0.3, lr=0.1).error <= 1e-8


def test_scaffold_compressed_is_scallion_written_out() -> None:
    """SCALLION's round, of equal devices with L the length of the path:

    delta_k = Q((theta - x_k)/L - c),  c_k <- c_k + delta_k,
    theta <- theta - L (mean delta_k + c),  c <- c + 1/m SUM delta_k

    A power of two as L, and scales that are powers of two: Q(-L v) = -L Q(v).
    """
    random, path, m, d = torch.Generator().manual_seed(0), 0.5, 5, 12
    theta, c, *found = torch.randn(4, d, generator=random, dtype=torch.float64)
    states = torch.randn(2, d, generator=random, dtype=torch.float64)
    method, q = feddyn.Scaffold(), TopK(0.5, Quantized(4))
    uplink = Uplink(q, method, theta, (8, 4))
    server = {"theta": theta, "c": c}
    total = {name: torch.zeros_like(theta) for name in server}
    deltas = [q.sent((theta - x) / path - c, (8, 4))[0] for x in found]
    for x, state, delta in zip(found, states, deltas, strict=True):
        reference = method.reference(server, {"c": state}, path)
        assert reference is not None
        seen = uplink.send(reference, x, None, [0]).seen
        after, up = method.report(server, {"c": state}, 1.0, Solution(seen, path))
        assert torch.allclose(after["c"], state + delta, rtol=0, atol=1e-12)
        total = {name: total[name] + up[name] for name in total}
    after = method.aggregate(server, total, 2, m)
    assert torch.allclose(after["theta"], theta - path * (sum(deltas) / 2 + c), rtol=0, atol=1e-12)
    assert torch.allclose(after["c"], c + sum(deltas) / m, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [feddyn.FedAvg(), feddyn.FedProx(0.1), feddyn.FedAvgM(0.5), feddyn.FedACG(0.5), feddyn.Scaffold()],
    ids=lambda method: type(method).__name__,
)
def test_servers_without_a_memory_carry_what_they_did_not_send(method: feddyn.Algorithm) -> None:
    """With short moves the server's model is where it is without compression; what it drops stays away for good."""
    raw = run(PROBLEMS["quadratics"], method, 250, lr=0.02).theta
    found = run(PROBLEMS["quadratics"], method, 250, None, TopK(0.1), lr=0.02).theta
    assert float((found - raw).norm()) <= 1e-4


@pytest.mark.parametrize(
    "method",
    [
        feddyn.FedAvg(),
        feddyn.FedProx(0.1),
        feddyn.FedAvgM(0.5),
        feddyn.FedAdam(0.1),
        feddyn.FedYogi(0.1),
        feddyn.FedACG(0.5),
        feddyn.AdaBest(0.1, 0.5),
        feddyn.Scaffold(),
    ],
    ids=lambda method: type(method).__name__,
)
def test_carried_is_as_if_devices_had_moved_from_the_broadcast(method: feddyn.Algorithm) -> None:
    """A round in which devices were sent w ends as one in which they were sent all, and moved alike."""
    random = torch.Generator().manual_seed(0)

    def some() -> torch.Tensor:
        return torch.rand(6, generator=random, dtype=torch.float64)

    server = {name: 1 + some()[: v.numel()] for name, v in method.server(some()).items()}
    wanted, move, unsent = method.broadcast(server), some(), some()
    (model,) = {"theta", "ahead"} & set(wanted)

    def after(down: dict[str, torch.Tensor], server: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        _, upload = method.report(down, method.device(move), 1.0, Solution(down[model] + move, 0.5))
        return method.aggregate(server, upload, 1, 4)

    whole = after(wanted, server)
    down = wanted | {model: wanted[model] - unsent}
    none = {name: torch.zeros_like(v) for name, v in wanted.items()}
    found = method.carry(
        after(down, server | {name: down[name] for name in method.as_sent or ()}), none | {model: unsent}
    )
    for name, vector in whole.items():
        assert torch.allclose(found[name], vector, rtol=0, atol=1e-12), name


def test_a_state_is_not_always_a_memory_of_what_was_not_sent() -> None:
    """AdaBest's estimates fade: without error feedback the model stays 0.6 from where it is without compression."""
    method = feddyn.AdaBest(0.05, 0.3)
    raw = run(PROBLEMS["quadratics"], method, 400, lr=0.02).theta
    found = run(PROBLEMS["quadratics"], method, 400, TopK(0.1), lr=0.02).theta
    assert float((found - raw).norm()) <= 0.1


@final
@dataclass(frozen=True)
class ScaledUp(Compressor):
    """Random coordinates times 1/fraction: right in the mean, and no contraction."""

    inner: RandomK

    def write(self, vector: Numbers, sizes: Sizes, seed: int) -> bytes:
        return self.inner.write(vector / self.inner.fraction, sizes, seed)

    def read(self, reader: Reader, sizes: Sizes) -> Numbers:
        return self.inner.read(reader, sizes)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    ("compressor", "way"),
    [
        (Quantized(2), "true update"),
        (TopK(0.1), "true update"),
        (Sign(), "true update"),
        (TopK(0.1), "extra feedback"),
        (RandomK(0.3), "extra feedback"),
        (ScaledUp(RandomK(0.1)), "right"),
    ],
)
@ROUNDS
def test_wrong_ways_fail_the_same_test(
    problem: str, compressor: Compressor, way: Way, active: int | None, lost: float, rounds: int
) -> None:
    """The device uses its true update; what was not sent is remembered twice; an unbiased compressor."""
    found = run(PROBLEMS[problem], feddyn.FedDyn(1.0), rounds, compressor, compressor, active, lost, way)
    assert found.error > 1e-4
    assert not exact(found)


def test_the_true_update_breaks_the_invariant() -> None:
    found = run(PROBLEMS["quadratics"], feddyn.FedDyn(1.0), 250, TopK(0.1), way="true update")
    assert found.invariant > 1e-2


def test_the_server_must_use_what_it_sent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A FedDyn whose server takes theta for what devices were sent, where they were sent w."""
    monkeypatch.setattr(feddyn.FedDyn, "as_sent", ())
    assert run(PROBLEMS["quadratics"], feddyn.FedDyn(1.0), 250, None, TopK(0.1)).invariant > 1e-3


@pytest.mark.parametrize("method", [feddyn.FedAvg(), feddyn.FedProx(0.1), feddyn.FedACG(0.5)], ids=str)
def test_devices_without_a_state_have_error_feedback(method: feddyn.Algorithm) -> None:
    """What arrives in all is what was meant in all, less what is still to be sent: SUM u = SUM v - e."""
    theta, generator = torch.zeros(40, dtype=torch.float64), torch.Generator().manual_seed(0)
    uplink = Uplink(TopK(0.1), method, theta, (40,))
    assert uplink.feedback
    unsent = meant = arrived = torch.zeros(2, 40, dtype=torch.float64)
    for t in range(30):
        found = torch.randn(2, 40, generator=generator, dtype=torch.float64)
        seen, rest, lengths, _ = uplink.send(theta, found, unsent, [2 * t, 2 * t + 1])
        assert rest is not None
        unsent = rest
        meant, arrived = meant + found, arrived + seen
        assert (seen.count_nonzero(1) == 4).all()
        assert len(lengths) == 2
    assert torch.allclose(arrived, meant - unsent, rtol=0, atol=1e-6)
    assert float(unsent.norm(dim=1).max()) < 10 * float(found.norm(dim=1).max())


@pytest.mark.parametrize(
    "method",
    [
        feddyn.FedDyn(0.1),
        feddyn.FedDynM(0.1, 0.5),
        feddyn.Scaffold(),
        feddyn.FedDR(0.1),
        feddyn.FedDC(0.1),
        feddyn.FedSplit(1.0, "all"),
    ],
    ids=str,
)
def test_devices_with_a_state_have_it_in_there(method: feddyn.Algorithm) -> None:
    assert not Uplink(Quantized(4), method, torch.zeros(40), (40,)).feedback


def test_a_method_whose_upload_the_server_cannot_make_is_refused() -> None:
    with pytest.raises(feddyn.InputError, match="FedSplit: its upload 'z' depends on the device's state"):
        Uplink(Quantized(4), feddyn.FedSplit(1.0), torch.zeros(40), (40,))


def test_scaffold_sends_one_vector_and_the_length_of_its_path() -> None:
    """The server computes c_k' - c_k = (theta - theta_k)/path - c itself."""
    theta = torch.randn(40, generator=torch.Generator().manual_seed(0))
    uplink = Uplink(Quantized(4), feddyn.Scaffold(), torch.zeros(40), (40,))
    lengths = uplink.send(torch.zeros(40), theta, None, [0]).lengths
    assert lengths == [len(Quantized(4).encode(theta, (40,))) + 4]
