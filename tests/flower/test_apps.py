"""The apps that Flower runs, with its messages but without its processes."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import feddyn
from feddyn.data.stored import Stored
from tests.conftest import make_logistic

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'feddyn[flower]'")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from torch import nn

from feddyn.flower import Rules, client_app, server_app
from feddyn.flower.apps import Service, one_device, serve
from feddyn.flower.letters import BadLetterError, Letter
from feddyn.flower.wire import content, letter_in
from feddyn.settings import deployed, deploying
from feddyn.settings.documents import expand
from tests.flower.grid import TownGrid

METHOD = feddyn.FedDyn(0.1)
FOUR = feddyn.Quantized(4)
SGD = feddyn.SGD(0.1, epochs=1, batch_size=8)
SETTING = """
seed = 2
rounds = 4
participation = 2
[model]
name = "linear"
dtype = "float64"
[population]
source = "synthetic"
kind = "type3"
devices = 3
samples = 20
features = 5
classes = 3
[algorithm]
name = "feddyn"
alpha = 0.1
[solver]
lr = 0.1
epochs = 1
batch_size = 5
"""

COMPRESSED = """
[uplink]
name = "quantized"
bits = 4
rounding = "stochastic"
[downlink]
name = "topk"
fraction = 0.3
values = { name = "quantized", bits = 4 }
"""


def served(app: Any) -> Service:
    """What a server's app makes of its objects."""
    (make,) = [cell.cell_contents for cell in app._main.__closure__]
    service = make()
    assert isinstance(service, Service)
    return service


def session(grid: Any, config: dict[str, Any], service: Service) -> None:
    serve(grid, config, lambda: service)


@pytest.fixture(autouse=True)
def a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages belong to a run of Flower's, of which a process has one."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture
def three() -> Stored:
    return make_logistic([10, 24, 15])


def nodes(root: Path, count: int) -> dict[str, dict[str, Any]]:
    return {f"site-{k}": {"partition-id": k, "state-dir": str(root / f"disk-{k}")} for k in range(count)}


@pytest.mark.parametrize("links", [{}, {"uplink": FOUR}, {"uplink": FOUR, "downlink": FOUR}], ids=len)
def test_apps_from_objects(links: dict[str, Any], three: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """A run's configuration changes the terms; the record is one that can be loaded and used."""
    load = lambda site: three.samples(site["partition-id"])  # noqa: E731
    client = client_app(METHOD, SGD, logistic, load, **links)
    server = server_app(METHOD, logistic, Rules(rounds=2), test=(three.x, three.y), **links)
    grid = TownGrid(client, nodes(tmp_path, 3))
    session(grid, {"out": str(tmp_path / "out"), "rounds": 3, "sites": 3, "deadline": 0}, served(server))
    simulated = feddyn.simulate(logistic, three, METHOD, SGD, participation=1.0, rounds=3, stack=1, **links)
    run = feddyn.load(tmp_path / "out", model=logistic)
    assert torch.equal(run.models["server"], simulated.models["server"])
    assert run.history[-1]["models"]["server"]["accuracy"] == simulated.history[-1]["models"]["server"]["accuracy"]
    assert run.model("server").state_dict().keys() == logistic.state_dict().keys()
    assert {name for name in ("uplink", "downlink") if name in run.setting} == links.keys()
    for name in ("bytes_up", "bytes_down"):
        assert run.history[-1][name] == simulated.history[-1][name]


def test_a_record_says_which_loss_and_metrics_it_was_made_with(three: Stored, tmp_path: Path) -> None:
    """As a simulation's does: loading it asks for them, and a session with others does not go on with it."""
    model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).double()
    data = three.x, three.y.double()
    mae = feddyn.Metric("mae", lambda output, y: ((output - y).abs().sum(), y.numel()), better="lower")

    def load(site: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = three.samples(site["partition-id"])
        return x, y.double()

    client = client_app(METHOD, SGD, model, load, loss=nn.functional.mse_loss)
    common: dict[str, Any] = {"test": data, "loss": nn.functional.mse_loss}
    server = server_app(METHOD, model, Rules(rounds=1, sites=3), metrics=[mae], **common)
    out = tmp_path / "out"
    session(TownGrid(client, nodes(tmp_path, 3)), {"out": str(out)}, served(server))
    run = feddyn.load(out, model=model, metrics=[mae])
    with pytest.raises(feddyn.InputError, match=r"mse_loss existed only in memory.*loss="):
        run.evaluate(one_device(*data), "server")
    run = feddyn.load(out, model=model, loss=nn.functional.mse_loss, metrics=[mae])
    assert run.evaluate(one_device(*data), "server").figures["mae"] == pytest.approx(
        run.history[-1]["models"]["server"]["mae"]
    )
    other = feddyn.Metric("mae", lambda output, y: ((output - y).square().sum(), y.numel()), better="lower")
    again = served(server_app(METHOD, model, Rules(rounds=2, sites=3), metrics=[other], **common))
    with pytest.raises(feddyn.InputError, match="evaluation"):
        session(TownGrid(client, nodes(tmp_path, 3)), {"out": str(out)}, again)
    with pytest.raises(feddyn.InputError, match="every must be a whole number"):
        served(server_app(METHOD, model, Rules(rounds=1), every=0, **common))


def test_what_cannot_be_deployed_is_refused_and_leaves_nothing(
    three: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    grid = TownGrid(client_app(METHOD, SGD, logistic, lambda site: three.samples(0)), nodes(tmp_path, 3))
    server = server_app(feddyn.FedDR(0.1), logistic, Rules(rounds=1), uplink=FOUR)
    with pytest.raises(feddyn.InputError, match="leave the uplink out"):
        session(grid, {"out": str(tmp_path / "out")}, served(server))
    assert not (tmp_path / "out").exists()


def test_a_session_that_could_not_begin_leaves_its_record_to_the_next(
    three: Stored, logistic: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = TownGrid(client_app(METHOD, SGD, logistic, lambda site: three.samples(site["partition-id"])), {})
    config = {"out": str(tmp_path / "out"), "rounds": 1, "sites": 3}
    service = served(server_app(METHOD, logistic, Rules(rounds=1)))
    with monkeypatch.context() as patch:
        patch.setattr("feddyn.flower.ledger.write", Mock(side_effect=OSError("no space")))
        with pytest.raises(OSError, match="no space"):
            session(grid, config, service)
    session(TownGrid(grid.app, nodes(tmp_path, 3)), config, service)
    assert len(feddyn.load(tmp_path / "out").history) == 1


def test_a_letter_that_is_too_large_is_named(three: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """Where Flower's grid gives no place to a message, as it does where the SuperLink refuses it for its size."""
    grid = TownGrid(client_app(METHOD, SGD, logistic, lambda site: three.samples(0)), nodes(tmp_path, 3))
    grid.push_messages = lambda messages: []  # type: ignore[method-assign]
    with pytest.raises(feddyn.FeddynError, match=r"refused a letter of 0\.0 MB as too large"):
        session(grid, {"out": str(tmp_path / "out")}, served(server_app(METHOD, logistic, Rules(rounds=1, sites=3))))


def test_a_directory_is_needed(logistic: nn.Module, tmp_path: Path) -> None:
    grid = TownGrid(client_app(METHOD, SGD, logistic, lambda _: ([], [])), {})
    with pytest.raises(feddyn.InputError, match="where the federation is kept"):
        session(grid, {"out": "relative"}, served(server_app(METHOD, logistic, Rules(rounds=1))))


@pytest.mark.parametrize("links", ["", COMPRESSED], ids=["whole", "compressed"])
def test_apps_from_a_settings_file(links: str, tmp_path: Path) -> None:
    """The same bits as `feddyn run` with stack = 1; and the network is made again from the record alone."""
    file = tmp_path / "setting.toml"
    file.write_text(SETTING + links)
    grid = TownGrid(deploying.client_app(file), nodes(tmp_path, 3))
    session(grid, {"out": str(tmp_path / "out"), "sites": 3}, served(deploying.server_app(file)))
    session(grid, {"out": str(tmp_path / "out"), "sites": 3}, served(deploying.server_app(file)))
    plan = deployed.deployable(file)
    parts = (plan.model, plan.population, plan.algorithm, plan.solver)
    ways: dict[str, Any] = {"uplink": plan.uplink, "downlink": plan.downlink}
    assert all(ways.values()) == bool(links)
    simulated = feddyn.simulate(*parts, participation=2, rounds=4, seed=2, stack=1, **ways)
    run = feddyn.load(tmp_path / "out")
    assert torch.equal(run.models["server"], simulated.models["server"])
    assert [line["models"]["server"] for line in run.history] == [h["models"]["server"] for h in simulated.history]
    assert isinstance(run.model("server"), nn.Module)
    assert run.setting["deployment"] == {"engine": "flower"}
    with pytest.raises(feddyn.InputError, match="goes on at its server"):
        expand(dict(run.setting))


def test_what_cannot_be_deployed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "setting.toml"
    file.write_text(SETTING + "[links]\nlost = 0.1\n")
    with pytest.raises(feddyn.InputError, match="simulated and not deployed"):
        deployed.deployable(file)
    file.write_text(SETTING.replace('"feddyn"', '"feddr"') + COMPRESSED)
    with pytest.raises(feddyn.InputError, match="measured from a device's own state"):
        deployed.deployable(file)
    file.write_text(SETTING)
    with pytest.raises(feddyn.InputError, match="partition-id=0 to 2, not 7"):
        deployed.alone(deployed.deployable(file).population, 7)


def test_hostile_messages_are_refused_and_the_run_goes_on(
    three: Stored, logistic: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every kind one round; in each the others alone are counted."""
    monkeypatch.setattr("feddyn.flower.desk.AGAIN", 0)  # nobody is left alone
    raw: dict[str, Any] = {"dtype": "<f8", "shape": (15,), "stype": "feddyn.raw", "data": bytes(120)}
    arrays = [
        {**raw, "data": bytes(119)},
        {**raw, "data": b""},
        {**raw, "shape": (2**40,)},
        {**raw, "shape": (-15,)},
        {**raw, "shape": (3, 5)},
        {**raw, "dtype": "|O"},
        {**raw, "dtype": "|u1", "shape": (120,)},
        {**raw, "stype": "numpy.ndarray"},
    ]
    forged: list[Any] = [ArrayRecord({"theta": Array(**array)}) for array in arrays]
    forged += [ConfigRecord({"theta": 1}), ArrayRecord({f"v{i}": Array(np.zeros(1)) for i in range(99)})]

    class Mischief:
        """Changes what the second site sends in each round."""

        def __init__(self) -> None:
            self.left = list(forged)

        def __call__(self, name: str, message: Message, reply: Message) -> Message:
            if name != "site-1" or not reply.content["vectors"]:
                return reply
            if self.left:
                reply.content["vectors"] = self.left.pop()
                return reply
            return Message(Error(code=0, reason="gone"), reply_to=message)

    client = client_app(METHOD, SGD, logistic, lambda site: three.samples(site["partition-id"]))
    grid = TownGrid(client, nodes(tmp_path, 3))
    grid.forge = Mischief()
    rounds = len(forged) + 1
    service = served(server_app(METHOD, logistic, Rules(rounds=rounds, sites=3)))
    session(grid, {"out": str(tmp_path / "out")}, service)
    history = feddyn.load(tmp_path / "out").history
    assert [line["active"] for line in history] == [[0, 2]] * rounds
    assert [line["refused"] for line in history] == [[1]] * len(forged) + [[]]
    assert history[-1]["lost"] == [1]


def test_a_site_that_does_not_train_needs_no_torch() -> None:
    words = "from pathlib import Path; from feddyn.settings.deploying import client_app; client_app(Path('x'))"
    words = f"import sys; {words}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", words], check=True)


def test_letters_survive_the_wire() -> None:
    vectors = {"a": np.arange(3.0), "b": np.arange(2, dtype=np.float32), "none": np.zeros(0)}
    vectors["message"] = np.arange(7, dtype=np.uint8)
    letter = Letter("train", {"ticket": "t", "round": 3, "share": 0.1}, vectors)
    back = letter_in(Message(content(letter), dst_node_id=1, message_type="train"))
    assert (back.kind, back.words) == (letter.kind, letter.words)
    for name, vector in vectors.items():
        assert back.vectors[name].dtype == vector.dtype
        assert np.array_equal(back.vectors[name], vector)
    with pytest.raises(BadLetterError):
        letter_in(Message(RecordDict(), dst_node_id=1, message_type="train"))
