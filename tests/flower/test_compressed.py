"""Compressed uploads and broadcasts of a deployment: the simulator's bits, and nothing that is lost, killed or forged
parts the two sides."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import feddyn
from feddyn import Quantized, TopK
from feddyn.data.stored import Stored
from feddyn.flower import ledger as ledgers
from feddyn.flower.arithmetic import tensors
from feddyn.flower.judge import Judge
from feddyn.flower.letters import beside
from feddyn.flower.membership import admit
from feddyn.flower.server import Server
from feddyn.flower.store import DeviceStore
from feddyn.models.flat import FlatModel
from feddyn.wire.common import APART, KEPT, WHOLE
from tests.algorithms.test_rounds import ALL
from tests.conftest import make_logistic
from tests.flower.test_protocol import SGD, crashing
from tests.flower.town import Town, unreliable
from tests.runs.test_power import Disk
from tests.runs.test_resume import Crash, Faults

FOUR = Quantized(4)
STOCHASTIC = Quantized(4, rounding="stochastic")
FEW = TopK(0.4, Quantized(4))
METHODS = [feddyn.FedDyn(0.1), feddyn.FedDynM(0.1, 0.5), feddyn.Scaffold(), feddyn.FedAvg(), feddyn.FedDC(0.1)]
BOTH: dict[str, Any] = {"uplink": STOCHASTIC, "downlink": STOCHASTIC}
WAYS = [
    pytest.param({"uplink": STOCHASTIC}, id="up"),
    pytest.param({"downlink": STOCHASTIC}, id="down"),
    pytest.param({"uplink": FEW, "downlink": FOUR}, id="both"),
]


def town(root: Path, population: Stored, model: nn.Module, method: Any = None, **more: Any) -> Town:
    return Town(root, population, method or feddyn.FedDyn(0.1), SGD, model, **{**BOTH, **more})


def kept(deployed: Town, server: Server, name: str) -> dict[str, torch.Tensor]:
    """What a site keeps beside the method's state at the ticket that was counted."""
    ledger = server.desk.ledger
    found = DeviceStore(deployed.devices[name].root, ledger.federation, name)._read(ledger.sites[name].counted)
    assert found is not None
    return tensors(beside(found[0]))


def require_common(deployed: Town, server: Server) -> None:
    """h is what the sites' states say, and whoever heard the last broadcast holds the server's w."""
    deployed.require_held(server)
    require_one_model(deployed, server)


def require_one_model(deployed: Town, server: Server) -> None:
    """Whoever heard the last broadcast holds the server's w, to the bit."""
    ledger = server.desk.ledger
    wire = tensors(ledger.wire)
    for name, site in ledger.sites.items():
        mine = kept(deployed, server, name)
        assert torch.equal(mine["start"], wire["start"])
        if site.heard == ledger.round:
            moved = {key: vector for key, vector in mine.items() if key.startswith("moved.")}
            assert moved
            assert all(torch.equal(vector, wire[key]) for key, vector in moved.items())


def simulated(model: nn.Module, population: Stored, method: feddyn.Algorithm, **more: Any) -> feddyn.Run:
    return feddyn.simulate(model, population, method, SGD, stack=1, **more)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_same_bits_as_a_simulation(
    method: feddyn.Algorithm, way: dict[str, Any], unbalanced: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """Six of ten sites a round, so most have missed broadcasts; every figure, every bit, and the bytes of what was
    sent: of letters, and those of the simulator, which counts the numbers beside a message too."""
    common: dict[str, Any] = {"participation": 6, "rounds": 5, "seed": 3}
    expected = simulated(logistic, unbalanced, method, **common, **way)
    deployed = town(tmp_path, unbalanced, logistic, method, **{"uplink": None, "downlink": None, **way})
    server = deployed.run(Judge(FlatModel(logistic), unbalanced, SGD.weight_decay), **common)
    deployed.require_held(server)
    record = feddyn.load(tmp_path / "server")
    assert torch.equal(record.models["server"], expected.models["server"])
    if "active" in record.models:
        assert torch.equal(record.models["active"], expected.models["active"])
    for line, other in zip(record.history, expected.history, strict=True):
        for name in ("round", "transmitted", "bytes_down", "gradients", "active", "norms"):
            assert line[name] == other[name], name
        assert line["models"]["server"] == other["models"]["server"]
    letters = [(letter, answer) for _, letter, answer in deployed.seen if letter.kind == "train"]
    up = sum(vector.nbytes for _, answer in letters for vector in answer.vectors.values())
    down = sum(vector.nbytes for letter, _ in letters for vector in letter.vectors.values())
    assert (record.history[-1]["bytes_up"], record.history[-1]["bytes_down"]) == (up, down)
    beside = 0 if not way.get("uplink") or isinstance(method, feddyn.FedDyn | feddyn.FedDynM) else 8 * len(letters)
    assert up == expected.history[-1]["bytes_up"] - beside  # a share or a path
    raw = deployed.server(**common).arithmetic.initial.nbytes * len(letters)
    assert (up < raw / 2) == ("uplink" in way)


@pytest.mark.parametrize("method", ALL)
def test_every_method_that_can_be_deployed_so(
    method: feddyn.Algorithm, unbalanced: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    deployed = town(tmp_path, unbalanced, logistic, method, uplink=FOUR, downlink=FOUR)
    if type(method).__name__ in ("FedDR", "FedSplit") and getattr(method, "mean", "act") == "act":
        with pytest.raises(feddyn.InputError, match=r"FedDR: its compressed uploads|FedSplit: its upload 'z' depends"):
            deployed.server()
        return
    expected = simulated(logistic, unbalanced, method, participation=6, rounds=3, uplink=FOUR, downlink=FOUR)
    require_common(deployed, deployed.run(participation=6, rounds=3))
    assert torch.equal(deployed.theta(), expected.models["server"])


def test_the_same_bits_with_a_network_in_float32(few: Stored, tmp_path: Path) -> None:
    """Trained by autograd, not in stacks; layers have scales of their own."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 3))
    for method in (feddyn.FedDyn(0.1), feddyn.FedDC(0.1)):
        root = tmp_path / type(method).__name__
        expected = simulated(model, few, method, participation=2, rounds=6, uplink=FEW, downlink=STOCHASTIC)
        deployed = town(root, few, model, method, uplink=FEW)
        require_one_model(deployed, deployed.run(participation=2, rounds=6))
        assert torch.equal(deployed.theta(), expected.models["server"])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("seed", [0, 1])
def test_lost_letters_and_lost_answers(
    method: feddyn.Algorithm, seed: int, few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """What was lost is sent again with the next broadcast, and states fall back with all that is beside them."""
    deployed = town(tmp_path, few, logistic, method, fate=unreliable(seed, 0.15, 0.3))
    server = deployed.server(rounds=12, least=2)
    admit(server.desk)
    for _ in range(12):
        server.round()
        require_common(deployed, server)
    history = server.journal.history
    assert any(line["late"] for line in history)
    assert any(line["lost"] for line in history)
    assert any(line["attempts"] > 1 for line in history)
    if isinstance(method, feddyn.FedAvg):
        assert all(kept(deployed, server, name)["unsent"].norm() > 0 for name in server.desk.ledger.sites)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # who crashes closes no files
@pytest.mark.parametrize(("power", "step", "method"), [(True, 2, METHODS[0]), (False, 5, METHODS[2])])
def test_a_crash_at_every_call_that_changes_a_file(
    power: bool, step: int, method: Any, logistic: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without compression: the federation goes on to the same bits."""
    two = make_logistic([10, 24])
    rules: dict[str, Any] = {"rounds": 3, "least": 2}
    undisturbed = town(tmp_path / "undisturbed", two, logistic, method)
    with monkeypatch.context() as patch:
        faults = crashing(undisturbed, 10**9, patch)
        undisturbed.run(**rules)
    for at in range(1, faults.calls + 1, step):
        disturbed = town(tmp_path / str(at), two, logistic, method)
        with monkeypatch.context() as patch:
            disk = Disk(patch, disturbed.root)
            if power:
                crashing(disturbed, at, patch)
            else:
                Faults(patch, at)
            with suppress(Crash):
                disturbed.run(**rules)
        if not power:
            disk.fail()
        require_common(disturbed, disturbed.run(**rules))
        assert torch.equal(disturbed.theta(), undisturbed.theta()), f"call {at} of {faults.calls}"
        shutil.rmtree(disturbed.root)


@pytest.mark.parametrize("method", METHODS[:2], ids=lambda method: type(method).__name__)
def test_who_was_away_and_who_joins_late_hold_the_same_model(
    method: feddyn.Algorithm, few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """After forty rounds both are sent w - theta^0 whole; theta^0 is sent to who joins late, and to nobody else."""
    deployed = town(tmp_path, few, logistic, method, open=["site-0", "site-1"])
    server = deployed.server(rounds=99)
    for round in range(KEPT + 12):
        if round == 2:
            deployed.open = ["site-0"]
        if round == KEPT + 10:
            deployed.open = ["site-0", "site-1", "site-2"]
        admit(server.desk)
        server.round()
        require_common(deployed, server)
        if round == 5:  # another session goes on from the ledger
            server.journal.record.release()
            server = deployed.server(rounds=99)
    model = "ahead" if isinstance(method, feddyn.FedDynM) else "theta"
    letters = [(to, letter.vectors[model]) for to, letter, _ in deployed.seen if letter.kind == "train"]
    kinds = {name: [data for to, data in letters if to == name] for name in deployed.open}
    assert [int(data[0]) for data in kinds["site-1"][-2:]] == [WHOLE, APART]
    assert [int(data[0]) for data in kinds["site-2"][-2:]] == [WHOLE, APART]
    assert {site.heard for site in server.desk.ledger.sites.values()} == {KEPT + 12}
    hellos = {name: letter for name, letter, _ in deployed.seen if letter.kind == "hello"}
    assert [set(hellos[name].vectors) for name in deployed.open] == [{"theta"}, {"theta"}, {"theta", "start"}]
    assert torch.equal(tensors(hellos["site-2"].vectors)["start"], FlatModel(logistic).theta)


def test_theta_0_is_that_of_the_first_session(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """A model of somebody's own may begin elsewhere whenever its app is started."""
    straight = town(tmp_path / "straight", few, logistic)
    straight.run(rounds=4)
    deployed = town(tmp_path / "in two", few, logistic)
    deployed.run(rounds=2)
    deployed.model = nn.Linear(4, 3).double()
    require_common(deployed, deployed.run(rounds=4))
    assert torch.equal(deployed.theta(), straight.theta())


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_resync_makes_up_for_a_lost_disk(
    method: feddyn.Algorithm, few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """Sites send the method's state alone; who lost its own begins afresh, without any broadcast."""
    deployed = town(tmp_path, few, logistic, method, fate=unreliable(5, 0, 0.4))
    server = deployed.server(rounds=20)
    admit(server.desk)
    for _ in range(4):
        server.round()
    heard = {name: site.heard for name, site in server.desk.ledger.sites.items()}
    assert len(set(heard.values())) > 1
    shutil.rmtree(tmp_path / "disk-1")
    server.resync()
    answers = [answer for _, letter, answer in deployed.seen if letter.kind == "resync" and answer.kind == "done"]
    assert [set(answer.vectors) for answer in answers] == [set(server.arithmetic.state)] * 2
    assert {name: site.heard for name, site in server.desk.ledger.sites.items()} == {**heard, "site-1": 0}
    require_common(deployed, server)
    for _ in range(4):
        server.round()
        require_common(deployed, server)
    assert len({site.heard for site in server.desk.ledger.sites.values()} | {0}) > 1


def test_a_ledger_of_the_round_before_finds_its_sites(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=20)
    admit(server.desk)
    for _ in range(3):
        backup = (tmp_path / "server" / ledgers.FILE).read_bytes()
        server.round()
    server.settle()
    server.journal.record.release()
    (tmp_path / "server" / ledgers.FILE).write_bytes(backup)
    again = deployed.server(rounds=20)
    for _ in range(2):
        again.round()
        require_common(deployed, again)
    assert again.journal.history[-1]["active"] == [0, 1, 2]


def test_a_round_that_could_not_be_written_leaves_the_broadcasts_as_they_were(
    few: Stored, logistic: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full for a moment: nobody was counted, so nobody has heard anything."""
    undisturbed = town(tmp_path / "undisturbed", few, logistic)
    undisturbed.run(rounds=4)
    deployed = town(tmp_path / "disturbed", few, logistic)
    server = deployed.server(rounds=4)
    admit(server.desk)
    server.round()
    with monkeypatch.context() as patch:
        patch.setattr(server.journal, "count", lambda *_: (_ for _ in ()).throw(OSError("no space")))
        with pytest.raises(OSError, match="no space"):
            server.round()
    require_common(deployed, server)
    for _ in range(3):
        server.round()
        require_common(deployed, server)
    server.journal.close(feddyn.load(tmp_path / "undisturbed" / "server").status)
    assert torch.equal(deployed.theta(), undisturbed.theta())
