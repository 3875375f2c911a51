"""Runs on which the engine is tried, in this process, in workers and in ranks; as a program, for torchrun."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.data.transforms import Images
from feddyn.records.layout import key

SIZES = [5, 40, 12, 90, 7, 33, 21, 64]
SGD = feddyn.SGD(0.1, epochs=2, batch_size=8, weight_decay=1e-3)


def images() -> Stored:
    """Eight devices with small images, as bytes."""
    generator = torch.Generator().manual_seed(0)
    count = sum(SIZES) + 300
    x = torch.randint(0, 256, (count, 3, 8, 8), generator=generator, dtype=torch.uint8)
    y = torch.randint(0, 4, (count,), generator=generator)
    owner = torch.repeat_interleave(torch.arange(len(SIZES)), torch.tensor(SIZES))
    train = sum(SIZES)
    population = feddyn.Population.from_arrays(x[:train], y[:train], owner, test=(x[train:], y[train:]))
    return Stored(
        population.x,
        population.y,
        population.offsets,
        population.names,
        population.test,
        transform=Images((0.5,) * 3, (0.3,) * 3, augment=True),
    )


def cases() -> dict[str, dict[str, Any]]:
    """Arguments of `feddyn.simulate`."""
    torch.manual_seed(0)
    points = feddyn.synthetic("type3", devices=12, samples=30, features=6, classes=3)
    mlp = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    dropout = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    cnn = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4))
    common: dict[str, Any] = {"population": points, "solver": SGD, "participation": 5, "rounds": 4, "seed": 1}
    return {
        "feddyn in stacks": {**common, "model": mlp, "algorithm": feddyn.FedDyn(0.1), "stack": 2},
        "feddyn one by one": {**common, "model": mlp, "algorithm": feddyn.FedDyn(0.1), "stack": 1},
        "feddynm in stacks": {**common, "model": mlp, "algorithm": feddyn.FedDynM(0.1, 0.5), "stack": 2},
        "scaffold on disk": {**common, "model": mlp, "algorithm": feddyn.Scaffold(), "stack": 1, "state_memory": 2000},
        "fedsplit": {**common, "model": nn.Linear(6, 3), "algorithm": feddyn.FedSplit(1.0, "all"), "stack": 3},
        "feddr in stacks": {**common, "model": mlp, "algorithm": feddyn.FedDR(0.1, 1.5), "stack": 3},
        "feddc on disk": {**common, "model": mlp, "algorithm": feddyn.FedDC(0.1), "stack": 1, "state_memory": 2000},
        "adabest": {**common, "model": mlp, "algorithm": feddyn.AdaBest(0.1, 0.8), "stack": 2},
        "fedacg": {**common, "model": nn.Linear(6, 3), "algorithm": feddyn.FedACG(0.8, 0.1), "stack": 2},
        "fedavgm": {**common, "model": mlp, "algorithm": feddyn.FedAvgM(0.8), "stack": 3},
        "fedadam": {**common, "model": mlp, "algorithm": feddyn.FedAdam(0.01), "stack": 3},
        "fedyogi": {**common, "model": mlp, "algorithm": feddyn.FedYogi(0.01), "stack": 1},
        "random layers": {**common, "model": dropout, "algorithm": feddyn.FedAvg(), "participation": 0.5},
        "images": {
            "model": cnn,
            "population": images(),
            "algorithm": feddyn.FedDyn(0.1),
            "solver": feddyn.SGD(0.05, epochs=1, batch_size=10, clip=1.0),
            "participation": 3,
            "rounds": 3,
            "evaluation": feddyn.Evaluation(every=2),
        },
        "compressed in stacks": {
            **common,
            "model": mlp,
            "algorithm": feddyn.FedDyn(0.1),
            "stack": 2,
            "uplink": feddyn.Quantized(4, rounding="stochastic"),
            "downlink": feddyn.TopK(0.2, feddyn.Quantized(4)),
        },
        "error feedback": {
            **common,
            "model": mlp,
            "algorithm": feddyn.FedAvg(),
            "uplink": feddyn.RandomK(0.3),
            "downlink": feddyn.Sign(),
            "links": feddyn.Links(lost=0.3, late=0.1),
        },
        "no mean of all": {
            **common,
            "model": mlp,
            "algorithm": feddyn.FedDyn(0.1),
            "evaluation": feddyn.Evaluation(models=["server", "active"]),
        },
    }


def digest(run: feddyn.Run) -> str:
    """Every line of the record and every bit of the models."""
    seen = hashlib.sha256(json.dumps([key(run.setting), run.summary, run.history]).encode())
    for name, vector in sorted(run.models.items()):
        seen.update(name.encode() + vector.numpy().tobytes())
    return seen.hexdigest()


def outcome(arguments: dict[str, Any]) -> str:
    return digest(feddyn.simulate(**arguments))


if __name__ == "__main__":
    found = {name: outcome(arguments) for name, arguments in cases().items()}
    if torch.distributed.get_rank() == 0:
        Path(sys.argv[1]).write_text(json.dumps(found))
