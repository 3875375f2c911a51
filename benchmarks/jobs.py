"""The jobs that everything is measured on, with random data."""

from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.networks import CNN, LSTM


@dataclass(frozen=True)
class Job:
    """Devices with so many samples each, of which some are active in a round and train for so many epochs."""

    devices: int
    samples: int
    shape: tuple[int, ...]
    classes: int
    batch: int
    epochs: int
    active: int
    test: int
    lr: float = 0.1
    weight_decay: float = 1e-4


JOBS = {
    "mlp": Job(100, 600, (784,), 10, 50, 5, 10, 10_000),
    "cnn": Job(100, 500, (3, 32, 32), 10, 50, 1, 10, 1_000),
    "massive": Job(1_000, 50, (30,), 5, 10, 1, 100, 2_000),
    "lstm": Job(100, 2_000, (80,), 80, 100, 1, 2, 1_000),
}


def network(name: str) -> nn.Module:
    """The model of a job, as one writes it in plain PyTorch."""
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))
    if name == "massive":
        return nn.Linear(30, 5)
    return CNN() if name == "cnn" else LSTM()


def inputs(name: str, count: int, job: Job) -> torch.Tensor:
    """Random samples: characters for the LSTM, normal numbers for the others."""
    return torch.randint(0, job.classes, (count, *job.shape)) if name == "lstm" else torch.randn(count, *job.shape)
