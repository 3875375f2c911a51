"""One SGD step of the logistic model: ours against a hand-written PyTorch loop, both in this run, taken in turns."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import feddyn

FEATURES, CLASSES, SAMPLES, BATCH, EPOCHS = 30, 5, 200, 10, 10
LR, WEIGHT_DECAY = 0.1, 1e-5
STEPS = SAMPLES // BATCH * EPOCHS
TURNS = 40


def bare(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """What a careful person writes by hand: flat parameters, batches by index, plain SGD into a flat gradient."""
    model = nn.Linear(FEATURES, CLASSES)
    theta, grad, at = torch.zeros(FEATURES * CLASSES + CLASSES), torch.zeros(FEATURES * CLASSES + CLASSES), 0
    for p in model.parameters():
        end = at + p.numel()
        p.data, p.grad = theta[at:end].view(p.shape), grad[at:end].view(p.shape)
        at = end
    server = theta.clone()

    def train() -> None:
        theta.copy_(server)
        for _ in range(EPOCHS):
            order = torch.randperm(SAMPLES)
            for start in range(0, SAMPLES, BATCH):
                pick = order[start : start + BATCH]
                grad.zero_()
                torch.autograd.backward(cross_entropy(model(x.index_select(0, pick)), y.index_select(0, pick)))
                theta.mul_(1 - LR * WEIGHT_DECAY).add_(grad, alpha=-LR)

    return train


def ours(x: torch.Tensor, y: torch.Tensor, problem: Callable[[torch.Tensor], feddyn.Problem]) -> Callable[[], None]:
    """The same device with feddyn's solver."""
    model = feddyn.FlatModel(nn.Linear(FEATURES, CLASSES))
    solver = feddyn.SGD(LR, epochs=EPOCHS, batch_size=BATCH, weight_decay=WEIGHT_DECAY)
    to_solve = problem(torch.zeros(model.size))

    def train() -> None:
        solver(to_solve, feddyn.Work(model, x, y, 0, 0))

    return train


def fedavg(theta: torch.Tensor) -> feddyn.Problem:
    return feddyn.Problem(theta)


def penalised(theta: torch.Tensor) -> feddyn.Problem:
    return feddyn.Problem(theta, tilt=torch.full_like(theta, 0.01), prox=0.1, center=theta)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.randn(SAMPLES, FEATURES), torch.randint(0, CLASSES, (SAMPLES,))
    loops = {
        "bare loop, FedAvg": bare(x, y),
        "feddyn, FedAvg": ours(x, y, fedavg),
        "feddyn, FedDyn": ours(x, y, penalised),
    }
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(TURNS + 2):
        for name, train in loops.items():
            start = time.perf_counter()
            train()
            if turn >= 2:  # the first two turns warm up
                seconds[name].append((time.perf_counter() - start) / STEPS)
    reference = seconds["bare loop, FedAvg"]
    print(f"one SGD step of the logistic model ({FEATURES} features, {CLASSES} classes, batch {BATCH}), one thread")
    print("| loop | microseconds a step | ratio to the bare loop |")
    print("| --- | --- | --- |")
    for name, times in seconds.items():
        ratio = statistics.median(t / r for t, r in zip(times, reference, strict=True))
        print(f"| {name} | {statistics.median(times) * 1e6:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
