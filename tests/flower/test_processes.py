"""A deployment with real processes on loopback, by TLS and with node authentication, in which everything is killed, and
what is sent is compressed both ways.

`python -m tests.flower.test_processes` kills SuperNodes and ClientApps too, for whose leases Flower waits a minute.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import feddyn

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'feddyn[flower]'")

from feddyn.deploy.files import Ports, init
from feddyn.deploy.keys import site_key
from feddyn.deploy.processes import Processes, has_proxy, running
from feddyn.flower import ledger as ledgers
from feddyn.flower.arithmetic import tensors
from feddyn.flower.store import DeviceStore
from feddyn.records.lines import read_lines
from feddyn.settings.deployed import deployable
from tests.flower.hooks import CLIENT, SERVER
from tests.flower.test_apps import COMPRESSED, SETTING

SITES = ["site-0", "site-1", "site-2"]
ROUNDS = 6
ENVIRONMENT = {"FEDDYN_WARM": "1", "FEDDYN_POLL": "0.1"}


def deployed(directory: Path, first: int) -> Ports:
    """A deployment of three sites whose apps can be told to kill themselves."""
    setting = directory.with_name(f"{directory.name}.toml")
    setting.write_text(SETTING.replace("participation = 2", "participation = 1.0") + COMPRESSED)
    ports = Ports(first + 1 if has_proxy() else first, first, first + 10)
    init(directory, setting, {}, sites=SITES, ports=ports, least=3, one_machine=True)
    (directory / "app" / "feddyn_app" / "server.py").write_text(SERVER)
    (directory / "app" / "feddyn_app" / "client.py").write_text(CLIENT)
    return ports


def require_held(directory: Path) -> ledgers.Ledger:
    """h = 1/m SUM share_k lambda_k, of the states that the ledger counts, to 1e-12."""
    ledger = ledgers.read(directory / "server" / "federation")
    assert ledger is not None
    total = torch.zeros_like(tensors(ledger.vectors)["h"])
    for name, site in ledger.sites.items():
        store = DeviceStore(directory / "sites" / name / "state", ledger.federation, name)
        found = store._read(site.counted)
        assert found is not None, name
        total += ledger.share(name) * tensors(found[0])["lambda"] / len(ledger.sites)
    assert torch.allclose(tensors(ledger.vectors)["h"], total, rtol=0, atol=1e-12)
    return ledger


def require_simulated(directory: Path, rounds: int) -> None:
    """All sites are waited for, so whatever was killed, the model is the simulator's."""
    plan = deployable(directory / "app" / "feddyn_app" / "setting.toml")
    simulated = feddyn.simulate(
        plan.model,
        plan.population,
        plan.algorithm,
        plan.solver,
        participation=1.0,
        rounds=rounds,
        seed=2,
        stack=1,
        uplink=plan.uplink,
        downlink=plan.downlink,
    )
    run = feddyn.load(directory / "server" / "federation")
    assert len(run.history) == rounds
    assert torch.equal(run.models["server"], simulated.models["server"])
    assert [line["models"]["server"] for line in run.history] == [h["models"]["server"] for h in simulated.history]


def sessions(processes: Processes) -> int:
    events = read_lines(processes.federation / "events.jsonl", dict)
    return sum(event["event"] == "session" for event in events)


def refused_by(processes: Processes, name: str) -> bool:
    """Whether a site that is started is turned away."""
    processes.start(name)
    processes.wait(f"{name} to be refused", lambda: not processes.alive(name), seconds=60)
    return "refused" in (log := (processes.logs / f"{name}.log").read_text().lower()) or "2004" in log or "305" in log


def test_kills_losses_and_strangers(tmp_path: Path) -> None:
    """The server's app is killed before and after it counts a round, 30% of the replies are lost, and the SuperLink is
    killed in a round; a stranger and a second node with a site's key are turned away. The run ends with the
    simulator's model."""
    directory = tmp_path / "deployment"
    ports = deployed(directory, 18700)
    fault, terms = directory / "server" / "fault", f"rounds={ROUNDS} deadline=60.0 poll=0.1"
    for name, key in (("stranger", None), ("twin", "site-0")):
        shutil.copytree(directory / "sites" / "site-1", directory / "sites" / name)
        if key is None:
            site_key(directory / "sites" / name)
        else:
            shutil.copy(directory / "sites" / key / "site.key", directory / "sites" / name / "site.key")
        script = directory / "sites" / name / "supernode.sh"
        script.write_text(script.read_text().replace(f"--port {ports.runtime + 1}", f"--port {ports.runtime + 8}"))
    with running(directory, SITES, (ports.proxy, ports.superlink), ENVIRONMENT) as processes:
        if has_proxy():
            for path, code in (("/v1/control/list-runs", "403"), ("/v1/runtime/x", "403"), ("/", "403")):
                assert asked(ports.proxy, path) == code
            assert asked(ports.proxy, "/v1/fleet/pull-messages") not in ("403", "502", "000")
        fault.write_text("before 2")
        processes.run(terms)
        processes.wait("the server to kill itself", lambda: not fault.exists())
        assert require_held(directory).round == 1
        assert refused_by(processes, "stranger")
        assert refused_by(processes, "twin")
        for name in SITES:
            (directory / "sites" / name / "lossy").touch()
        fault.write_text("after 3")
        processes.run(terms)
        processes.wait("the server to kill itself", lambda: not fault.exists())
        assert require_held(directory).round == 3
        for name in SITES:
            (directory / "sites" / name / "lossy").unlink()
        processes.run(terms)
        processes.wait("the next session", lambda: sessions(processes) == 3)
        processes.kill("superlink")
        processes.start("superlink", ports.superlink)
        require_held(directory)
        processes.run(terms)
        processes.wait("the end", lambda: processes.rounds == ROUNDS and processes.ended)
        require_held(directory)
    require_simulated(directory, ROUNDS)


def asked(port: int, path: str) -> str:
    """The code with which a port answers somebody who has the CA's certificate or does not care."""
    words = ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", f"https://127.0.0.1:{port}{path}"]
    return subprocess.run(words, capture_output=True, text=True).stdout


def scene(directory: Path, first: int, say: Callable[[str], None]) -> None:
    """A SuperNode is killed before it trains, after it, after it has written its state, and after that was counted;
    then a ClientApp. Each is started again as systemd would."""
    ports = deployed(directory, first)
    points = ["settled supernode", "trained supernode", "written supernode", "counted supernode", "written clientapp"]
    terms = f"rounds={2 * len(points)} deadline=150.0 poll=0.1"
    with running(directory, SITES, (ports.proxy, ports.superlink), ENVIRONMENT) as processes:
        processes.run(terms)
        for number, fault in enumerate(points):
            place, before = directory / "sites" / "site-1", 2 * number
            processes.wait("a round", lambda before=before: processes.rounds > before, seconds=300)  # type: ignore[misc]
            (place / "pid").write_text(str(processes.pid("site-1")))
            if fault.startswith("counted"):
                processes.kill("site-1")
            else:
                (place / "fault").write_text(fault)
                processes.wait(fault, lambda place=place: not (place / "fault").exists())  # type: ignore[misc]
            while "supernode" in fault and processes.rounds < 2 * number + 2:
                if not processes.alive("site-1"):
                    processes.start("site-1")
                time.sleep(5)
            require_held(directory)
            say(f"{fault}: round {processes.rounds}")
        processes.wait("the end", lambda: processes.rounds == 2 * len(points) and processes.ended, seconds=600)
        require_held(directory)
    require_simulated(directory, 2 * len(points))
    say("the model is the simulator's")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        scene(Path(temporary) / "deployment", 18800, print)
