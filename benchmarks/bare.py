"""The bare loop, the yardstick of every ratio: what a careful person writes by hand in plain PyTorch for one job.

FedAvg with flat parameters, batches by index_select, no DataLoader, plain SGD into a flat gradient buffer, one thread a
process, channels_last for the CNN. The active devices are dealt round-robin to the processes; averaging and evaluation
are the first process's. A round is run when it is asked for, so that rounds can be taken in turns with others.
"""

from multiprocessing.queues import Queue
from typing import Any

import torch
import torch.multiprocessing as mp
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.jobs import JOBS, Job, inputs, network

EVALUATION_BATCH = 1_000


def flatten(model: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """One vector of parameters and one of gradients, of which the model's tensors become views."""
    count = sum(p.numel() for p in model.parameters())
    theta, grad, at = torch.empty(count), torch.zeros(count), 0
    for p in model.parameters():
        views = [vector[at : at + p.numel()] for vector in (theta, grad)]
        if p.dim() == 4:
            out, channels, height, width = p.shape
            views = [view.view(out, height, width, channels).permute(0, 3, 1, 2) for view in views]
        value, slope = (view if p.dim() == 4 else view.view(p.shape) for view in views)
        value.copy_(p.detach())
        p.data, p.grad = value, slope
        at += p.numel()
    return theta, grad


def laid_out(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


class Trainer:
    """Trains one device after the other in its process."""

    def __init__(self, name: str, job: Job, *shared: torch.Tensor):
        torch.set_num_threads(1)
        self.job = job
        self.x, self.y, self.server, self.found = shared
        self.model = network(name)
        self.theta, self.grad = flatten(self.model)

    def train(self, place: int, device: int) -> None:
        job, x, y = self.job, self.x[device], self.y[device]
        self.theta.copy_(self.server)
        for _ in range(job.epochs):
            for pick in torch.randperm(job.samples).split(job.batch):
                self.grad.zero_()
                output = self.model(laid_out(x.index_select(0, pick)))
                torch.autograd.backward(cross_entropy(output, y.index_select(0, pick)))
                self.theta.mul_(1 - job.lr * job.weight_decay).add_(self.grad, alpha=-job.lr)
        self.found[place].copy_(self.theta)


def work(todo: "Queue[Any]", done: "Queue[Any]", *arguments: Any) -> None:
    trainer = Trainer(*arguments)
    for share in iter(todo.get, None):
        for place, device in share:
            trainer.train(place, device)
        done.put(len(share))


class Bare:
    """A job in so many processes."""

    def __init__(self, name: str, processes: int):
        self.job = job = JOBS[name]
        torch.manual_seed(0)
        x = inputs(name, job.devices * job.samples, job).view(job.devices, job.samples, *job.shape).share_memory_()
        y = torch.randint(0, job.classes, (job.devices, job.samples)).share_memory_()
        self.test = laid_out(inputs(name, job.test, job)), torch.randint(0, job.classes, (job.test,))
        self.model = network(name)
        self.theta, _ = flatten(self.model)
        self.server = self.theta.clone().share_memory_()
        self.found = torch.zeros(job.active, len(self.theta)).share_memory_()
        arguments = (name, job, x, y, self.server, self.found)
        self.here = Trainer(*arguments) if processes == 1 else None
        self.queues: list[Any] = [mp.Queue() for _ in range(processes)] if processes > 1 else []
        self.done: Any = mp.Queue()
        self.workers = [mp.Process(target=work, args=(queue, self.done, *arguments)) for queue in self.queues]
        for worker in self.workers:
            worker.start()

    def round(self) -> None:
        active = list(enumerate(torch.randperm(self.job.devices)[: self.job.active].tolist()))
        if self.here:
            for place, device in active:
                self.here.train(place, device)
        for number, queue in enumerate(self.queues):
            queue.put(active[number :: len(self.queues)])
        for _ in self.queues:
            self.done.get()
        self.server.copy_(self.found.mean(0))
        self.theta.copy_(self.server)
        with torch.inference_mode():
            for x, y in zip(*(part.split(EVALUATION_BATCH) for part in self.test), strict=True):
                cross_entropy(self.model(x), y, reduction="sum")

    def close(self) -> None:
        for queue in self.queues:
            queue.put(None)
        for worker in self.workers:
            worker.join()
