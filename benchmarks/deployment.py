"""A deployment on loopback, measured: `python -m benchmarks.deployment [--sites 20] [--rounds 30] [--stock]`.

SuperLink, proxy and one SuperNode a site, with TLS and node authentication, train the paper's MLP on MNIST, all sites
in every round, of which four fifths close it. The last line printed is JSON: seconds a round, bytes, and the resident
memory of the SuperLink and of the server's app after each round. `--stock`: Flower's own client processes instead of
warm ones. `--fedavg`: also Flower's own FedAvg with the same model, data and passes on the same deployment. `--small`:
the linear model on synthetic data. `--compressed`: 4 bits at step = 2 each way.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from feddyn.deploy.files import Ports, init
from feddyn.deploy.processes import Processes, has_proxy, running
from feddyn.settings.loading import load

MNIST = """
seed = 0
rounds = {rounds}
participation = 1.0
model = {{ name = "mlp" }}
population = {{ source = "mnist", devices = {sites} }}
algorithm = {{ name = "feddyn", alpha = 0.01 }}
solver = {{ lr = 0.1, epochs = 1, batch_size = 50, weight_decay = 1e-4 }}
"""
SMALL = """
seed = 0
rounds = {rounds}
participation = 1.0
model = {{ name = "linear" }}
population = {{ source = "synthetic", kind = "type3", devices = {sites}, samples = 100 }}
algorithm = {{ name = "feddyn", alpha = 0.01 }}
solver = {{ lr = 0.1, epochs = 1, batch_size = 50 }}
"""
COMPRESSED = """
uplink = { name = "quantized", bits = 4, step = 2.0 }
downlink = { name = "quantized", bits = 4, step = 2.0 }
"""
FEDAVG_SERVER = '''
"""Flower's own FedAvg."""
import time
from pathlib import Path

from flwr.app import ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

from feddyn.settings.deployed import deployable

app = ServerApp()


@app.main()
def main(grid, context):
    plan = deployable(Path(__file__).parent / "setting.toml")
    out = Path(context.run_config["out"])
    def mark(number, arrays):
        with out.with_name("fedavg.txt").open("a") as file:
            file.write(f"{time.time()}\\n")
    sites = int(context.run_config["sites"])
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=sites, min_available_nodes=sites)
    arrays = ArrayRecord(plan.model.state_dict())
    strategy.start(grid, arrays, num_rounds=int(context.run_config["rounds"]), evaluate_fn=mark)
    out.with_name("fedavg.done").touch()
'''
FEDAVG_CLIENT = '''
"""A site of Flower's own FedAvg."""
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from feddyn.settings.deployed import deployable

app = ClientApp()


@app.train()
def train(message, context):
    plan = deployable(Path(__file__).parent / "setting.toml")
    torch.set_num_threads(1)
    population, model = plan.population, plan.model
    x, y = population.samples(context.node_config["partition-id"])
    if population.transform is not None:
        x = population.transform(x, torch.float32)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=plan.solver.lr, weight_decay=plan.solver.weight_decay)
    for pick in torch.randperm(len(y)).split(plan.solver.batch_size):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[pick]), y[pick]).backward()
        optimizer.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(y)})}
    return Message(RecordDict(content), reply_to=message)
'''


def watch(processes: Processes, sites: list[str], rounds: int) -> list[dict[str, int]]:
    """The memory of the server's processes when each round was counted; sites that end are started again."""
    seen: list[dict[str, int]] = []
    while len(seen) < rounds:
        done = processes.rounds
        while len(seen) < done:
            seen.append({"round": len(seen) + 1, **processes.memory()})
        for name in sites:
            if not processes.alive(name):
                processes.start(name)
        time.sleep(1)
    return seen


def fedavg(directory: Path, processes: Processes, rounds: int) -> list[float]:
    """Seconds a round of Flower's FedAvg."""
    package = directory / "app" / "feddyn_app"
    (package / "server.py").write_text(FEDAVG_SERVER)
    (package / "client.py").write_text(FEDAVG_CLIENT)
    processes.run(f"rounds={rounds}")
    done = directory / "server" / "fedavg.done"
    processes.wait("FedAvg", done.exists, seconds=300.0 * rounds)
    marks = [float(line) for line in (directory / "server" / "fedavg.txt").read_text().split()]
    return [end - start for start, end in pairwise(marks)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--first-port", type=int, default=18300)
    for name in ("stock", "fedavg", "small", "compressed"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="deployment-"))
    setting = directory / "setting.toml"
    text = (SMALL if options.small else MNIST).format(rounds=options.rounds, sites=options.sites)
    setting.write_text(text + COMPRESSED * options.compressed)
    first, sites = options.first_port, [f"site-{k}" for k in range(options.sites)]
    ports = Ports(first + 1 if has_proxy() else first, first, first + 10)
    place = directory / "deployment"
    init(place, setting, {}, sites=sites, ports=ports, least=-(-options.sites * 4 // 5), one_machine=True)
    # Flower's SQLite does not take more than some twenty looks a second
    environment = {} if options.stock else {"FEDDYN_WARM": "1", "FEDDYN_POLL": str(max(0.2, options.sites / 20))}
    with running(place, sites, (ports.proxy, ports.superlink), environment) as processes:
        processes.run(f"rounds={options.rounds} deadline=120.0 poll=0.5")
        memory = watch(processes, sites, options.rounds)
        processes.wait("the end", lambda: processes.ended)
        theirs = fedavg(place, processes, min(options.rounds, 5)) if options.fedavg else []
    run = load(place / "server" / "federation")
    last: dict[str, Any] = dict(run.history[-1])
    timings = (place / "server" / "federation" / "timings.jsonl").read_text().splitlines()
    seconds = [line["seconds"] for line in map(json.loads, timings) if "round" in line]
    found = {
        "sites": options.sites,
        "rounds": options.rounds,
        "seconds": seconds,
        "median": statistics.median(seconds[1:] or seconds),
        "bytes_up": last["bytes_up"],
        "bytes_down": last["bytes_down"],
        "figures": last["models"]["server"],
        "attempts": sum(line["attempts"] for line in run.history),
        "memory": memory,
        "fedavg": theirs,
    }
    shutil.rmtree(directory)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
