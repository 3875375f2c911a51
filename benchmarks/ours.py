"""The jobs in feddyn: FedDyn, with the mean of all devices kept and evaluated, as the paper reports it."""

import torch
from torch import nn

import feddyn
from benchmarks.jobs import JOBS, Job, inputs
from feddyn.data.transforms import Images
from feddyn.models import zoo

ROUNDS = 1_000_000
"""More than are ever run: rounds are taken one at a time."""


def model(name: str) -> nn.Module:
    """The same function as the bare loop's network, from feddyn's own."""
    torch.manual_seed(0)
    networks = {"mlp": lambda: zoo.mlp(784, 10), "cnn": lambda: zoo.cnn(10), "lstm": lambda: zoo.lstm(80)}
    return networks[name]() if name in networks else nn.Linear(30, 5)


def population(name: str, job: Job) -> feddyn.Population:
    """The samples; images are bytes and augmented, which the bare loop is spared."""
    torch.manual_seed(0)
    count, images = job.devices * job.samples, name == "cnn"
    x, test = (
        torch.randint(0, 256, (n, *job.shape), dtype=torch.uint8) if images else inputs(name, n, job)
        for n in (count, job.test)
    )
    y, test_y = torch.randint(0, job.classes, (count,)), torch.randint(0, job.classes, (job.test,))
    owner = torch.arange(job.devices).repeat_interleave(job.samples)
    transform = Images((0.5,) * 3, (0.25,) * 3, augment=True) if images else None
    return feddyn.Population.from_arrays(x, y, owner, test=(test, test_y), transform=transform)


def plan(name: str, job: Job, people: feddyn.Population) -> feddyn.Plan:
    solver = feddyn.SGD(job.lr, epochs=job.epochs, batch_size=job.batch, weight_decay=job.weight_decay)
    evaluation = feddyn.Evaluation(models=["all"])
    return feddyn.Plan(model(name), people, feddyn.FedDyn(0.1), solver, job.active, ROUNDS, evaluation=evaluation)


class Ours:
    """A job in so many workers."""

    def __init__(self, name: str, workers: int | None, people: feddyn.Population | None = None):
        job = JOBS[name]
        self.simulation = feddyn.Simulation(plan(name, job, people or population(name, job)), workers=workers)
        self._rounds = iter(self.simulation)

    def round(self) -> None:
        next(self._rounds)

    def close(self) -> None:
        self.simulation.federation.close()
