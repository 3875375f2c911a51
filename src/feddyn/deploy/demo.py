"""A whole deployment on loopback: real processes, TLS, authentication, a kill -9 in the middle, and the same bits."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from feddyn.deploy.files import Ports, init
from feddyn.deploy.processes import Processes, has_proxy, running
from feddyn.errors import InputError
from feddyn.flower.rules import Rules, fewest
from feddyn.runs.simulate import simulate
from feddyn.settings.deployed import deployable
from feddyn.settings.loading import load
from feddyn.views.tables import Table

SETTING = Path(__file__).parent / "demo.toml"


class Scene(NamedTuple):
    """Where a demonstration takes place, and how: kill the server's app after a round (0: never), and warm apps."""

    directory: Path
    setting: Path = SETTING
    rounds: int | None = None
    first_port: int = 18000
    kill_after: int = 3
    warm: bool = True
    deadline: float = 120.0


def demo(scene: Scene, say: Callable[[str], None]) -> Table:
    """Deploy a setting, kill the server in the middle, go on, and compare with a simulation; `say` is told what
    happens."""
    plan = deployable(scene.setting)
    rounds, count = scene.rounds or plan.rounds, plan.population.devices
    if count > 200:
        raise InputError(f"{scene.setting} has {count} devices, each of which would be two processes: use fewer")
    proxy = scene.first_port + 443 if has_proxy() else scene.first_port
    ports = Ports(proxy, scene.first_port, scene.first_port + 500)
    sites = [f"site-{k}" for k in range(count)]
    # all are there throughout, so that a round in which fewer take part is drawn as in a simulation
    least = fewest(plan.participation, rounds) or (count if plan.participation == 1.0 else 1)
    Rules(rounds, plan.participation, least=least)
    init(scene.directory, scene.setting, dict(plan.code), sites=sites, ports=ports, least=least, one_machine=True)
    say(f"wrote the app, keys and scripts to {scene.directory}: a throw-away CA, and a key for each of {count} sites")
    environment = {"FEDDYN_WARM": "1", "FEDDYN_POLL": "0.2"} if scene.warm else {}
    terms = f"rounds={rounds} deadline={scene.deadline} poll=0.2"
    with running(scene.directory, sites, (ports.proxy, ports.superlink), environment) as processes:
        way = f"through nginx on port {proxy}" if has_proxy() else "directly (nginx is not installed)"
        say(f"SuperLink on 127.0.0.1:{ports.superlink}, {count} SuperNodes, all by TLS with node authentication, {way}")
        processes.run(terms)
        say("the server's app is started")
        if 0 < scene.kill_after < rounds:
            _kill(processes, scene.kill_after, say)
            processes.run(terms)
            say("the same command again: the federation goes on")
        processes.wait_for_app(f"round {rounds}", lambda: processes.rounds >= rounds and processes.ended, 60.0 * rounds)
        say(f"all {rounds} rounds are counted")
    say("every process is ended")
    return _compared(scene, rounds)


def _kill(processes: Processes, after: int, say: Callable[[str], None]) -> None:
    processes.wait_for_app(f"round {after}", lambda: processes.rounds >= after, 60.0 * after + 120)
    killed = processes.kill_server_app()
    time.sleep(0.2)
    say(f"round {processes.rounds}: kill -9 of the server's app" if killed else "the server's app was gone already")


def _compared(scene: Scene, rounds: int) -> Table:
    """The figures of the deployment beside those of a simulation."""
    plan = deployable(scene.setting)
    simulated = simulate(
        plan.model,
        plan.population,
        plan.algorithm,
        plan.solver,
        participation=plan.participation,
        rounds=rounds,
        seed=plan.seed,
        loss=plan.loss,
        evaluation=plan.evaluation,
        uplink=plan.uplink,
        downlink=plan.downlink,
        stack=1,
    )
    run = load(scene.directory / "server" / "federation")
    rows = []
    for line, other in zip(run.history, simulated.history, strict=True):
        if "models" in line and "models" in other:
            pairs = zip(line["models"]["server"].items(), other["models"]["server"].values(), strict=True)
            figures = [f"{one:.6f} / {two:.6f}" for (_, one), two in pairs]
            rows.append([str(line["round"]), ", ".join(map(str, line["active"])), *figures])
    same = torch.equal(run.models["server"], simulated.models["server"])
    verdict = "identical to the last bit" if same else "NOT the same"
    columns = ["round", "sites", *(name for name in run.history[-1]["models"]["server"])]
    title = f"the server's model, deployed / simulated: {verdict} after {rounds} rounds"
    return Table(title, columns, rows)
