"""Which devices are trained together as one batched computation.

Batching pays while a step's cost is that of calling the operations and not of their arithmetic, so it depends on the
model's size. It never depends on the number of workers or ranks, so that a setting gives the same bits everywhere.
"""

import warnings
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from feddyn.algorithms.base import Algorithm
from feddyn.batches import joined, leaves, mapped, split, taken
from feddyn.data.population import Population
from feddyn.data.stored import convert
from feddyn.engine.stackable import refusal
from feddyn.errors import InputError
from feddyn.models.flat import FlatModel
from feddyn.models.stacked import linear_layers, stacked
from feddyn.origin import told
from feddyn.round.confined import confined
from feddyn.round.local import augmented
from feddyn.round.rehearsal import averages, telling_rows
from feddyn.solvers.base import Batchable, Solver

CACHE = 1 << 17
"""The parameters of a stack's models together: more do not fit in a core's cache, where batching loses its gain."""
LARGEST = 64
WORTH = 8
"""Devices from which on an automatically batched model is faster than a loop over them; closed forms are from 2 on."""


def stack_size(
    stack: int | None,
    model: FlatModel,
    population: Population,
    algorithm: Algorithm,
    solver: Solver,
    expected: float,
) -> int:
    """How many devices train together at most, where `stack` does not fix it; 1 is a loop.

    `expected` is how many devices are active in a round.
    """
    if stack == 1:
        return 1
    reason = _refusal(model, population, solver)
    if stack is not None:
        if reason := reason or refusal(algorithm, model.theta):
            raise InputError(f"stack = {stack} is not possible: {reason}; use stack = 1")
        return stack
    size = min(LARGEST, CACHE // model.size)
    worth = WORTH if linear_layers(model) is None else 2
    if size < WORTH or expected < worth or reason:
        return 1
    if reason := refusal(algorithm, model.theta):
        warnings.warn(f"{reason}; devices train one by one, which is slower (stack = 1 means that)", stacklevel=2)
        return 1
    return size


def _refusal(model: FlatModel, population: Population, solver: Solver) -> str:
    """Why devices cannot be batched; empty if they can."""
    if not isinstance(solver, Batchable):
        return "the solver takes one device at a time, unlike SGD"
    if augmented(population):
        return "the data is augmented, device by device"
    samples, targets = population.excerpt()
    if linear_layers(model) is not None and not isinstance(samples, torch.Tensor):
        return "a model in closed form takes one input"
    rows = telling_rows(samples, targets)
    if len(rows) < 2 and model.loss is not nn.functional.cross_entropy:
        return "one sample does not show whether the loss is a mean over samples"
    x, y = (convert(taken(data, rows), model.theta.dtype, model.theta.device) for data in (samples, targets))
    model.module.train()
    weight = model.theta.new_full((1, 1, len(y)), 1 / len(y))
    with warnings.catch_warnings(), confined(model.theta.device):
        warnings.simplefilter("ignore")  # what should be warned of is found when the model is tried out
        try:
            if population.transform is not None:
                x = population.transform(x, model.theta.dtype)
            output, apart = model(x), joined([model(row) for row in split(x, 1)])
            alone = model.gradient(x, y)
            way = stacked(model)(model.theta.expand(1, 1, -1))
            (batch,) = way.prepare(mapped(lambda leaf: leaf[None, None], x), y[None, None], weight)
            batched = way.gradient(batch)
            # in a stack, batches are filled up with samples of weight 0, which must not matter to the others
            alike = all(map(_close, leaves(apart), leaves(output)))
            apart_is_together = alike and averages(model.loss, output, y)
        except Exception as error:  # somebody's own code, which may fail alone too: then the rehearsal says so
            return f"vmap does not work with this model ({told(error)})"
    if not apart_is_together or not _close(batched.flatten(), alone):
        return "the loss or the model mixes or weighs the samples of a batch"
    return ""


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = one.shape == other.shape
    return alike and bool((one - other).norm() <= 1e-3 * other.norm() + torch.finfo(one.dtype).eps)


def groups_of(devices: Sequence[int], sizes: Sequence[int], largest: int) -> list[list[int]]:
    """Devices in groups of at most `largest`, as equal as can be, the devices with the most samples first: in a group
    they wait for each other, and between processes the long tasks are best given out first."""
    order = sorted(range(len(devices)), key=lambda i: (-sizes[i], devices[i]))
    count = -(-len(devices) // largest)
    cuts = [len(devices) * i // count for i in range(count + 1)]
    return [[devices[i] for i in order[start:end]] for start, end in pairwise(cuts)]
