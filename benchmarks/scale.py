"""A million devices, and a thousand with large states: `python -m benchmarks.scale devices|states`.

devices: rounds of the massive job, its data made on demand, with 1,000 and with 1,000,000 devices, taken in turns.
states: FedDyn with the paper's CNN touches each of 1,000 devices with a budget of 1 GB for 6.4 GB of states.
The last line printed is JSON.
"""

import json
import statistics
import sys
import time

import numpy as np
import torch

import feddyn
from benchmarks.jobs import JOBS
from benchmarks.memory import resident
from benchmarks.ours import Ours
from feddyn.models import zoo

TURNS = 60
BUDGET = 10**9


def make(device: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A device of the massive job, drawn from its number alone."""
    job, rng = JOBS["massive"], np.random.Generator(np.random.Philox(key=device))
    x = rng.standard_normal((job.samples, *job.shape), dtype=np.float32)
    return torch.from_numpy(x), torch.from_numpy(rng.integers(0, job.classes, job.samples))


def devices() -> dict[str, float]:
    job, seconds, peak = JOBS["massive"], dict[int, list[float]](), 0
    test = [torch.cat(parts) for parts in zip(*(make(10**7 + k) for k in range(40)), strict=True)]
    runs = {}
    for count in (1_000, 1_000_000):
        people = feddyn.Population.on_demand(make, np.full(count, job.samples), test=(test[0], test[1]))
        runs[count], seconds[count] = Ours("massive", None, people), []
    for turn in range(TURNS):
        for count, run in runs.items():
            start = time.perf_counter()
            run.round()
            if turn >= 5:
                seconds[count].append(time.perf_counter() - start)
        peak = max(peak, resident() or 0)
    for run in runs.values():
        run.close()
    small, large = (statistics.median(times) for times in seconds.values())
    return {"small": small, "large": large, "peak_bytes": peak}


def states() -> dict[str, float]:
    count, peak, began = 1_000, 0, time.perf_counter()
    x, y = torch.randn(count, 3, 32, 32), torch.randint(0, 10, (count,))
    people = feddyn.Population.from_arrays(x, y, torch.arange(count), test=(x[:10], y[:10]))
    schedule = [list(range(at, at + 10)) for at in range(0, count, 10)] * 2
    plan = feddyn.Plan(zoo.cnn(10), people, feddyn.FedDyn(0.1), feddyn.SGD(0.01, epochs=1), schedule, len(schedule))
    simulation = feddyn.Simulation(plan, state_memory=BUDGET)
    for _ in simulation:
        peak = max(peak, resident() or 0)
    kept = len(simulation.federation.ever_active) * simulation.federation.trainer.store.width * 4
    return {"kept_bytes": kept, "peak_bytes": peak, "seconds": (time.perf_counter() - began) / len(schedule)}


if __name__ == "__main__":
    print(json.dumps({"devices": devices, "states": states}[sys.argv[1]]()))
