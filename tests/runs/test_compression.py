"""Whole runs with compressed uploads and downloads: exact, counted in the bytes that are sent, and always the same."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pytest
import torch
from torch import nn

import feddyn
from feddyn.algorithms import Scalar, State
from feddyn.data.stored import Stored
from feddyn.engine.trainer import UNSENT
from feddyn.records.layout import key
from feddyn.round.sums import ExactSums
from feddyn.wire.exact import write_exactly

DECAY = 0.1
SGD = feddyn.SGD(0.1, epochs=2, batch_size=8)
FOUR = feddyn.Quantized(4)
TOP = feddyn.TopK(0.2, FOUR)
POINTS = feddyn.synthetic("type2", devices=8, samples=20, features=6, classes=3)


def test_feddyn_finds_the_optimum_with_both_ways_compressed_and_uploads_lost(
    logistic: nn.Module, unbalanced: Stored
) -> None:
    """In every round h = 1/m SUM share_k lambda_k to 1e-12, at the end the optimum of the pooled loss to 1e-8."""
    exact = feddyn.Exact(weight_decay=DECAY)
    plan = feddyn.Plan(
        logistic,
        unbalanced,
        feddyn.FedDyn(1.0),
        exact,
        6,
        220,
        evaluation=feddyn.Evaluation(every=220),
        links=feddyn.Links(lost=0.3),
        uplink=FOUR,
        downlink=FOUR,
    )
    simulation = feddyn.Simulation(plan, workers=1)
    federation, m = simulation.federation, unbalanced.devices
    for _ in simulation:
        slopes = {k: federation.state(k)["lambda"] for k in federation.ever_active}
        mean = sum((unbalanced.share(k) * slope for k, slope in slopes.items()), torch.zeros(1)) / m
        scale = max((float(slope.norm()) for slope in slopes.values()), default=1.0)
        assert float((federation.server["h"] - mean).norm()) <= 1e-12 * scale
    best = feddyn.simulate(logistic, unbalanced.pooled(), feddyn.FedAvg(), exact, participation=1.0, rounds=1)
    assert float((federation.server["theta"] - best.models["server"]).norm()) <= 1e-8


def arguments(**other: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    population = feddyn.synthetic("type3", devices=9, samples=30, features=6, classes=3)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    common: dict[str, Any] = {"participation": 4, "rounds": 12, "seed": 1, "workers": 1, "solver": SGD}
    return {"model": model, "population": population, **common, **other}


@pytest.mark.parametrize(
    "method", [feddyn.FedDyn(0.1), feddyn.FedAvg(), feddyn.Scaffold(), feddyn.FedACG(0.5)], ids=str
)
def test_a_run_goes_on_to_the_same_bits(method: feddyn.Algorithm, tmp_path: Path) -> None:
    links = feddyn.Links(lost=0.2)
    given = arguments(algorithm=method, uplink=TOP, downlink=feddyn.Quantized(2), links=links)
    whole = feddyn.simulate(**given)
    workers = given.pop("workers")
    plan = feddyn.Plan(**given)
    for line in feddyn.Simulation(plan, tmp_path / "part", workers=workers):
        if line["round"] == 7:
            break
    del line
    rest = feddyn.simulate(**given, workers=2, out=tmp_path / "part", resume=True)
    assert rest.history == whole.history
    assert all(torch.equal(rest.models[name], whole.models[name]) for name in whole.models)


@pytest.mark.parametrize("method", [feddyn.FedAvg(), feddyn.Scaffold()], ids=str)
def test_compressed_downloads_take_little_accuracy(method: feddyn.Algorithm) -> None:
    """The loss stays within 5%; a server that drops what it did not send loses a fifth and more."""
    given = arguments(algorithm=method, rounds=20, evaluation=feddyn.Evaluation(every=20))
    raw, found = (feddyn.simulate(**given, downlink=how).history[-1] for how in (None, feddyn.Quantized(2)))
    assert found["models"]["server"]["loss"] <= 1.05 * raw["models"]["server"]["loss"]


def test_bytes_and_models_are_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of two devices: the first message of each is the broadcast, then each device's upload. A device that was
    there before is sent the message; one that comes for the first time hears of both broadcasts."""
    sent: list[bytes] = []
    encode = feddyn.Quantized.encode

    def spy(self: feddyn.Quantized, *given: Any) -> bytes:
        sent.append(encode(self, *given))
        return sent[-1]

    monkeypatch.setattr(feddyn.Quantized, "encode", spy)
    given = arguments(algorithm=feddyn.FedDyn(0.1), participation=[[0, 1], [0, 2]], rounds=2, stack=1)
    raw = feddyn.simulate(**given).history[0]
    assert raw["bytes_up"] == raw["bytes_down"] == 2 * 4 * 83  # parameters of the network
    run = feddyn.simulate(**given, uplink=FOUR, downlink=FOUR)
    one, two = run.history
    lengths = [len(message) for message in sent]
    assert len(lengths) == 6
    sealed = 2 + 1 + 4  # the kind and the number of messages, the length of one, the checksum
    assert one["bytes_up"] == sum(lengths[1:3])
    assert two["bytes_up"] == one["bytes_up"] + sum(lengths[4:])
    assert one["bytes_down"] == 2 * (lengths[0] + sealed)
    start, sizes = feddyn.FlatModel(given["model"]).theta, feddyn.FlatModel(given["model"]).sizes
    move, *found = (FOUR.decode(sent[place], sizes).float() for place in (3, 4, 5))
    assert torch.allclose(run.models["active"], start + move + sum(found) / 2, rtol=0, atol=1e-6)
    both = FOUR.decode(sent[0], sizes) + FOUR.decode(sent[3], sizes)
    new = min(lengths[0] + 1 + lengths[3] + sealed, 2 + len(write_exactly(both.numpy(), sizes)) + 4)
    assert two["bytes_down"] == one["bytes_down"] + lengths[3] + sealed + new


def test_what_was_not_sent_is_recorded() -> None:
    """One device: the coordinates that are sent and those that are not make up its move, by Pythagoras."""
    given = arguments(algorithm=feddyn.FedDyn(0.1), participation=[[0]], rounds=1, stack=1)
    whole = feddyn.simulate(**given).history[0]["devices"]["drift"]
    part = feddyn.simulate(**given, uplink=feddyn.TopK(0.3)).history[0]["devices"]
    assert part["unsent"] > 0.1 * whole
    assert part["drift"] ** 2 + part["unsent"] ** 2 == pytest.approx(whole**2, rel=1e-4)


def test_a_compressed_upload_is_one_vector_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCAFFOLD's too; bytes are whole numbers, not terms of a sum that has a limit."""
    begin = ExactSums.__init__

    def narrow(self: ExactSums, terms: int) -> None:
        begin(self, terms)
        self.limit = 64.0

    monkeypatch.setattr(ExactSums, "__init__", narrow)
    line = feddyn.simulate(**arguments(algorithm=feddyn.Scaffold(), rounds=1, uplink=FOUR)).history[0]
    assert line["transmitted"] == 1
    assert line["bytes_up"] > 4 * 64 / 2


def test_what_was_not_sent_is_kept_for_devices_without_a_state() -> None:
    given = arguments(algorithm=feddyn.FedAvg(), participation=[[0], [0]], rounds=2, stack=1)
    given.pop("workers")
    simulation = feddyn.Simulation(feddyn.Plan(**given, uplink=feddyn.TopK(0.1)), workers=1)
    federation = simulation.federation
    for _ in simulation:
        assert float(federation.store.state(0)[UNSENT].norm()) > 0
        assert federation.state(0) == {}


def test_uploads_that_are_lost_count_as_long_as_the_others() -> None:
    links = feddyn.Links(lost=0.5)
    run = feddyn.simulate(**arguments(algorithm=feddyn.FedDyn(0.1), uplink=FOUR, links=links))
    before = {"bytes_up": 0, "wasted": 0}
    for line in run.history:
        if line["active"]:
            up = line["bytes_up"] - before["bytes_up"]
            reached = len(line["active"]) + len(line["lost"])
            assert 30 * reached < up < 200 * reached
        before = line
    assert run.history[-1]["wasted"] > 0


def test_compression_belongs_to_the_setting_and_its_absence_does_not() -> None:
    given = arguments(algorithm=feddyn.FedDyn(0.1))
    given.pop("workers")
    plain, up = feddyn.Plan(**given).setting(), feddyn.Plan(**given, uplink=TOP, downlink=FOUR).setting()
    assert {"uplink", "downlink"}.isdisjoint(plain)
    four = {"name": "quantized", "bits": 4, "per": "layer", "rounding": "nearest"}
    assert up["downlink"] == four
    assert up["uplink"] == {"name": "topk", "fraction": 0.2, "values": four}
    assert key(up) != key(plain)


def test_a_compressor_must_be_one() -> None:
    with pytest.raises(feddyn.InputError, match="uplink must be a"):
        feddyn.simulate(**arguments(algorithm=feddyn.FedDyn(0.1), uplink=4))


@final
@dataclass(frozen=True)
class Undeclared(feddyn.Algorithm):
    """FedDyn that says nothing of compressed messages."""

    inner: feddyn.FedDyn

    def server(self, theta: torch.Tensor) -> State:
        return self.inner.server(theta)

    def device(self, theta: torch.Tensor) -> State:
        return self.inner.device(theta)

    def broadcast(self, server: State) -> State:
        return self.inner.broadcast(server)

    def problem(self, down: State, device: State, share: Scalar) -> feddyn.Problem:
        return self.inner.problem(down, device, share)

    def report(self, down: State, device: State, share: Scalar, found: feddyn.Solution) -> tuple[State, State]:
        return self.inner.report(down, device, share, found)

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        return self.inner.aggregate(server, total, count, devices)

    def weight(self, share: Scalar) -> Scalar:
        return self.inner.weight(share)


@pytest.mark.parametrize(
    ("links", "words"),
    [
        (
            {"uplink": feddyn.Quantized(4)},
            "Undeclared: uploads can only be compressed where .* remembers_unsent = True",
        ),
        ({"downlink": feddyn.Quantized(4)}, "Undeclared: broadcasts can only be compressed where .* as_sent = "),
    ],
)
def test_a_method_that_does_not_say_what_compression_does_to_it_is_refused(links: Any, words: str) -> None:
    """It would train, and end elsewhere."""
    with pytest.raises(feddyn.InputError, match=words):
        feddyn.simulate(
            nn.Linear(6, 3), POINTS, Undeclared(feddyn.FedDyn(0.1)), SGD, participation=3, rounds=2, **links
        )


def test_uploads_that_are_all_lost_are_not_for_free() -> None:
    links = feddyn.Links(lost=1.0)
    run = feddyn.simulate(
        nn.Linear(6, 3), POINTS, feddyn.FedDyn(0.1), SGD, participation=3, rounds=2, links=links, uplink=feddyn.Sign()
    )
    assert run.history[-1]["bytes_up"] == 2 * 3 * 21 * 4  # nobody knows better than the raw vectors


def test_what_was_not_broadcast_is_recorded() -> None:
    """The first broadcast is theta^0, which everybody has."""
    run = feddyn.simulate(
        nn.Linear(6, 3), POINTS, feddyn.FedDyn(0.1), SGD, participation=3, rounds=4, downlink=feddyn.TopK(0.2)
    )
    first, *others = (line["broadcast"] for line in run.history)
    assert first == {"sent": 0.0, "unsent": 0.0}
    assert all(norms["sent"] > 0 < norms["unsent"] for norms in others)
    whole = feddyn.simulate(nn.Linear(6, 3), POINTS, feddyn.FedDyn(0.1), SGD, participation=3, rounds=2)
    assert "broadcast" not in whole.history[-1]
