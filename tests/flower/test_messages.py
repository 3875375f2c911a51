"""Messages in letters that nobody encoded, or that another compressor did; and what server and sites must agree on."""

import json
import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save
from torch import nn

import feddyn
from feddyn import Quantized, RandomK
from feddyn.data.stored import Stored
from feddyn.flower import ledger as ledgers
from feddyn.flower.arithmetic import Arithmetic, tensors
from feddyn.flower.letters import BadLetterError, Letter, digest, message
from feddyn.flower.membership import admit
from feddyn.models.flat import FlatModel
from feddyn.wire.base import CHECKSUM, Compressor, Sizes, checksum
from feddyn.wire.digits import count
from tests.flower.test_compressed import FEW, FOUR, STOCHASTIC, require_common, town
from tests.flower.test_protocol import events


def sealed(body: bytes, compressor: Compressor = STOCHASTIC) -> bytes:
    """A message with a right checksum, as an enemy would send it."""
    return body + checksum(body, repr(compressor))


HOSTILE: dict[str, Callable[[bytes], Any]] = {
    "nothing": lambda _: b"",
    "cut off": lambda text: text[:-1],
    "altered": lambda text: bytes([text[0] ^ 1]) + text[1:],
    "random": lambda text: random.Random(0).randbytes(len(text)),
    "sealed random": lambda text: sealed(random.Random(1).randbytes(len(text))),
    "sealed and cut off": lambda text: sealed(text[: -CHECKSUM - 1]),
    "another compressor's": lambda _: RandomK(0.5).encode(torch.ones(15), (12, 3)),
    "of a larger model": lambda _: STOCHASTIC.encode(torch.ones(30), (15, 15)),
    "a huge count": lambda _: sealed(bytes([3]) + count(2**60)),
    "huge numbers": lambda _: STOCHASTIC.encode(torch.full((15,), 2.0**100).double(), (12, 3)),
    "long": lambda text: text + bytes(10**6),
    "numbers": lambda text: np.frombuffer(text, np.uint8).astype(np.float64),
    "a matrix": lambda text: np.frombuffer(text, np.uint8)[None],
    "a theta beside it": lambda text: {"message": np.frombuffer(text, np.uint8), "theta": np.zeros(15)},
    "a theta instead": lambda _: {"theta": np.zeros(15)},
    "no path": lambda text: text,
    "a path that is none": lambda text: text,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_message_is_left_out(kind: str, few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """The model is the one that the others make alone, and the site goes on from what was counted of it."""

    def forge(name: str, answer: Letter) -> Letter:
        if name != "site-1" or not answer.vectors:
            return answer
        bad = HOSTILE[kind](answer.vectors["message"].tobytes())
        words = dict(answer.words)
        if "path" in kind:
            del words["path"]
            words |= {"path": float("nan")} if kind == "a path that is none" else {}
        vectors = bad if isinstance(bad, dict) else {"message": message(bad) if isinstance(bad, bytes) else bad}
        return Letter(answer.kind, words, vectors)

    method = feddyn.Scaffold() if "path" in kind else feddyn.FedDyn(0.1)
    without = town(tmp_path / "without", few, logistic, method)
    without.fate = lambda name, letter: "lost" if name == "site-1" and letter.kind == "train" else "answered"
    without.run(rounds=3)
    bad = town(tmp_path / "bad", few, logistic, method, forge=forge)
    server = bad.run(rounds=3)
    require_common(bad, server)
    assert torch.equal(bad.theta(), without.theta())
    assert [line["refused"] for line in server.journal.history] == [[1]] * 3
    assert server.journal.history[-1]["wasted"] > 0
    whys = {event["why"] for event in events(tmp_path / "bad", "refused")}
    assert whys <= {"bad message", "other names", "another shape", "too large", "bad path"}


def test_hostile_bytes_take_no_more_memory_than_a_few_models() -> None:
    """Of 20,000 parameters, each a message that says of itself that it is right."""
    model, dice = FlatModel(nn.Linear(1999, 10)), random.Random(0)
    arithmetic = Arithmetic(feddyn.FedDyn(0.1), model, FOUR)
    down = arithmetic.algorithm.broadcast(arithmetic.begin())
    good = FOUR.encode(torch.randn(model.size), model.sizes)[:-CHECKSUM]
    refused = 0
    for _ in range(60):
        text = bytearray(good)
        for _ in range(3):
            text[dice.randrange(min(40, len(text)))] = dice.randrange(256)
        letter = Letter("done", {}, {"message": message(sealed(bytes(text[: dice.randrange(9, len(text))]), FOUR))})
        tracemalloc.start()
        with suppress(BadLetterError):
            arithmetic.received(letter, down, 1.0)
            refused -= 1
        refused += 1
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20 * arithmetic.initial.nbytes
    assert refused > 40


def test_messages_that_are_too_long_are_not_even_read(logistic: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    arithmetic = Arithmetic(feddyn.FedDyn(0.1), FlatModel(logistic), FOUR)
    down = arithmetic.algorithm.broadcast(arithmetic.begin())
    read: list[int] = []

    def decode(_: Compressor, text: bytes, sizes: Sizes) -> None:
        read.append(len(text))
        raise feddyn.InputError("nonsense")

    monkeypatch.setattr(Quantized, "decode", decode)
    for length, seen in ((10**6, []), (10**3, [10**3])):
        with pytest.raises(BadLetterError):
            arithmetic.received(Letter("done", {}, {"message": message(bytes(length))}), down, 1.0)
        assert read == seen


def test_a_broadcast_that_was_altered_is_refused_by_the_site(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=3)
    admit(server.desk)
    server.round()
    letters = server._letters(["site-0"], server.broadcasts.send(tensors(server.desk.ledger.vectors), 0))
    letter = letters["site-0"]
    bad = letter.vectors["theta"].copy()
    bad[3] ^= 1
    for vectors in ({"theta": bad}, {}, {"theta": np.zeros(15)}):
        assert deployed.deliver("site-0", letter._replace(vectors=vectors)) == Letter("failed", {"why": "bad letter"})
    good = deployed.deliver("site-0", letter)
    assert good is not None
    assert good.kind == "done"


def test_two_sides_with_other_compressors_refuse_each_other(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    deployed = town(tmp_path, few, logistic)
    ways: list[dict[str, Any]] = [{"uplink": FOUR}, {"uplink": None, "downlink": None}]
    for number, way in enumerate(ways, 1):
        deployed.devices[f"site-{number}"] = town(tmp_path, few, logistic, **way).devices[f"site-{number}"]
    deployed.run(rounds=2, sites=1)
    refused = {event["site"]: event["why"] for event in events(tmp_path, "not admitted")}
    assert refused == dict.fromkeys(("site-1", "site-2"), "another method or model")
    for way in (*ways, {"downlink": None}, {"downlink": FEW}):
        with pytest.raises(feddyn.InputError, match="another compression"):
            town(tmp_path, few, logistic, **way).server(rounds=9)


def test_layers_are_part_of_what_both_sides_must_have() -> None:
    """Scales are those of layers: with as many parameters in other layers, messages would say something else."""
    one, other = FlatModel(nn.Linear(4, 3)), FlatModel(nn.Linear(2, 5))
    assert one.size == other.size == 15
    method = feddyn.FedDyn(0.1)
    assert Arithmetic(method, one).key == Arithmetic(method, other).key
    assert Arithmetic(method, one, FOUR).key != Arithmetic(method, other, FOUR).key
    assert Arithmetic(method, one, FOUR).key != Arithmetic(method, one, None, FOUR).key


def test_a_federation_of_before_compression_goes_on(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """Its ledger has no word of what sites heard, and the key is what it was."""
    plain: dict[str, Any] = {"uplink": None, "downlink": None}
    deployed = town(tmp_path, few, logistic, **plain)
    ledger = deployed.run(rounds=2).desk.ledger
    assert ledger.wire == {}
    with safe_open(tmp_path / "server" / ledgers.FILE, framework="numpy") as file:
        words = json.loads(file.metadata()["ledger"])
    for site in words["sites"].values():
        del site["heard"]
    text, vectors = json.dumps(words), dict(ledger.vectors)
    known = {"ledger": text, "sha256": digest(text, vectors)}
    (tmp_path / "server" / ledgers.FILE).write_bytes(save(vectors, metadata=known))
    read = ledgers.read(tmp_path / "server")
    assert read is not None
    assert {site.heard for site in read.sites.values()} == {0}
    assert replace(read.sites["site-0"], heard=2) == ledger.sites["site-0"]
    deployed.require_held(deployed.run(rounds=4))
    straight = town(tmp_path / "straight", few, logistic, **plain)
    straight.run(rounds=4)
    assert torch.equal(deployed.theta(), straight.theta())


def test_a_method_with_a_reserved_name_is_refused(logistic: nn.Module) -> None:
    class Own(feddyn.FedAvg):  # type: ignore[misc]
        def server(self, theta: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"theta": theta, "wire/start": theta}

    with pytest.raises(feddyn.InputError, match="cannot be called 'wire/start'"):
        Arithmetic(Own(), FlatModel(logistic))
