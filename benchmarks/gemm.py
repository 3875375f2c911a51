"""How much arithmetic a job needs, and how much this machine could do: its matrix products in all cores at once."""

import time
from typing import Any

import torch
import torch.multiprocessing as mp
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.jobs import JOBS, inputs, network

SIZE = 1536


def operations(name: str) -> int:
    """Floating-point operations of a round's training: those of the matrix products and convolutions of one gradient,
    as PyTorch counts them, for every batch."""
    job, model = JOBS[name], network(name)
    x, y = inputs(name, job.batch, job), torch.randint(0, job.classes, (job.batch,))
    with FlopCounterMode(display=False) as counter:
        torch.autograd.backward(cross_entropy(model(x), y))
    return int(counter.get_total_flops()) * job.active * job.epochs * -(-job.samples // job.batch)


def _work(todo: Any, done: Any) -> None:
    torch.set_num_threads(1)
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    for repeats in iter(todo.get, None):
        for _ in range(repeats):
            a @ b
        done.put(repeats)


class Peak:
    """Matrix products in so many processes; `rate` is the operations a second of all of them together."""

    def __init__(self, processes: int):
        self.queues: list[Any] = [mp.Queue() for _ in range(processes)]
        self.done: Any = mp.Queue()
        self.workers = [mp.Process(target=_work, args=(queue, self.done)) for queue in self.queues]
        for worker in self.workers:
            worker.start()

    def rate(self, repeats: int = 20) -> float:
        start = time.perf_counter()
        for queue in self.queues:
            queue.put(repeats)
        for _ in self.queues:
            self.done.get()
        return len(self.queues) * repeats * 2 * SIZE**3 / (time.perf_counter() - start)

    def close(self) -> None:
        for queue in self.queues:
            queue.put(None)
        for worker in self.workers:
            worker.join()
