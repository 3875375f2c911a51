"""Seconds a round of FedAvg in Flower (`flwr` 1.41): `python -m benchmarks.flower JOB ROUNDS`.

JOB is mlp or massive. A round trains the active devices with plain SGD, averages them, and evaluates the server's model
centrally; it lasts from one central evaluation to the next. One round to warm up comes first and is not counted; the
last line printed is JSON with the seconds of each of the ROUNDS that follow and the resident memory of all processes
after the last of them.

Flower's simulation runs on Ray, one actor a core with one thread each. The server and the engine look for messages
every 0.1 s each, for which `run_simulation` has no option, so no round is shorter than that.
"""

import json
import os
import sys
import time
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.jobs import JOBS, inputs, network
from benchmarks.memory import resident

# Flower and Ray would otherwise report their use over the network; they read this when imported.
os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

EVALUATION_BATCH = 1_000


@cache
def devices(name: str) -> tuple[torch.Tensor, torch.Tensor, nn.Module]:
    """The samples and labels of all devices and a model to train: made once in each actor, in the warm-up round."""
    job = JOBS[name]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = inputs(name, job.devices * job.samples, job).view(job.devices, job.samples, *job.shape)
    return x, torch.randint(0, job.classes, (job.devices, job.samples)), network(name)


def train(message: Any, context: Any) -> Any:
    """What an actor does for one active device."""
    name = message.content["config"]["job"]
    job = JOBS[name]
    all_x, all_y, model = devices(name)
    x, y = all_x[context.node_config["partition-id"]], all_y[context.node_config["partition-id"]]
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=job.lr, weight_decay=job.weight_decay, fused=True)
    for _ in range(job.epochs):
        for pick in torch.randperm(job.samples).split(job.batch):
            optimizer.zero_grad()
            torch.autograd.backward(cross_entropy(model(x.index_select(0, pick)), y.index_select(0, pick)))
            optimizer.step()
    metrics = MetricRecord({"num-examples": job.samples})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)


def main(name: str, rounds: int) -> None:
    job = JOBS[name]
    times: list[float] = []
    memory: list[int | None] = []

    def serve(grid: Any, _: Any) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        model = network(name)
        x, y = inputs(name, job.test, job), torch.randint(0, job.classes, (job.test,))

        def evaluate(number: int, arrays: Any) -> Any:
            model.load_state_dict(arrays.to_torch_state_dict())
            with torch.inference_mode():
                batches = zip(x.split(EVALUATION_BATCH), y.split(EVALUATION_BATCH), strict=True)
                loss = sum(cross_entropy(model(b), t, reduction="sum").item() for b, t in batches)
            times.append(time.perf_counter())
            if number > rounds:
                memory.append(resident())
            return MetricRecord({"loss": loss / job.test})

        # In the first round the fraction is of the devices that are registered by then, hence the minimum.
        strategy = FedAvg(
            fraction_train=job.active / job.devices,
            fraction_evaluate=0.0,
            min_train_nodes=job.active,
            min_available_nodes=job.devices,
        )
        strategy.start(
            grid,
            ArrayRecord(model.state_dict()),
            num_rounds=rounds + 1,
            train_config=ConfigRecord({"job": name}),
            evaluate_fn=evaluate,
        )

    client, server = ClientApp(), ServerApp()
    client.train()(train)
    server.main()(serve)
    resources: Any = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, client, num_supernodes=job.devices, backend_config=resources)
    # The first time is of the evaluation before training, the second ends the round that warms up.
    seconds = [end - start for start, end in pairwise(times[1:])]
    print(json.dumps({"seconds": seconds, "peak_bytes": memory[0]}))


if __name__ == "__main__":
    # Ray sends a module's functions by name but those of __main__ by value, and then every message would make the data.
    from benchmarks import flower

    flower.main(sys.argv[1], int(sys.argv[2]))
