"""A rehearsal on a few samples, so that what does not fit together is refused before any work is done."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from feddyn.algorithms.base import Algorithm, Problem, Solution, State, Vector
from feddyn.batches import Batch, form, joined, leaves, split, taken
from feddyn.data.population import Population
from feddyn.data.transforms import Transform
from feddyn.errors import FeddynError, InputError
from feddyn.models.flat import FlatModel, Loss
from feddyn.models.losses import binary
from feddyn.origin import telling, told
from feddyn.round.confined import confined

WHOLE = (
    'cross-entropy takes classes as whole numbers (of a table, task = "classes" makes them so); for regression, '
    'loss=mse_loss, in a settings file loss = "mse"'
)
NEARLY = 1e-3
"""How far from 1 the sum of probabilities may be that were rounded."""
CLASSES = 100
"""Of more classes than about that, not all are looked at."""


def try_out(model: FlatModel, population: Population, transform: Transform | None = None) -> None:
    """Take a gradient on a few training and test samples; refuse data, losses and layers that cannot be meant. With
    `transform`, raw samples go through it where the population has none of its own."""
    transform = population.transform or transform
    model.module.train()
    model.channels_last = any(isinstance(layer, nn.Conv2d) for layer in model.module.modules())
    buffers = {name: (value, value._version) for name, value in model.module.named_buffers()}
    for what, x, y in (("devices'", *population.excerpt()), ("test set's", *(population.test or ((), ())))):
        if len(y) == 0:
            continue
        _require_meant(model.loss, y, what)
        rows = telling_rows(x, y)
        shapes = f"x {form(x)}, y {form(y)}"
        with confined(model.theta.device):
            batch = taken(x, rows)
            with telling(f"the transform does not fit the {what} samples ({shapes})", InputError):
                batch = batch if transform is None else transform(batch, model.theta.dtype)
            _try_loss(model, batch, y[rows], f"the model does not fit the {what} samples ({shapes})")
    for name, value in model.module.named_buffers():
        if name not in buffers or value is not buffers[name][0] or value._version != buffers[name][1]:
            raise InputError(
                f"the model changes its buffer {name!r} while it trains; such running statistics are not parameters "
                "and cannot be averaged between devices: use a layer without them (BatchNorm: feddyn.models.group_norm)"
            )


def try_method(algorithm: Algorithm, theta: Vector, devices: int) -> None:
    """Go through a round of one device with a method that may be somebody's own; refuse what is not as it should be."""

    def call(name: str, *words: Any) -> Any:
        with telling(f"{where}.{name} fails when it is tried out", InputError):
            return getattr(algorithm, name)(*words)

    def vectors(name: str, found: object) -> State:
        if isinstance(found, dict) and all(isinstance(vector, torch.Tensor) for vector in found.values()):
            return found
        raise InputError(f"{where}.{name} must give vectors by name, as in {{'theta': ...}}, not {_kind(found)}")

    where = type(algorithm).__name__
    server = vectors("server", call("server", theta))
    if "theta" not in server:
        raise InputError(f"{where}.server must give the server's model as 'theta'; it gives: {', '.join(server)}")
    device = vectors("device", call("device", theta))
    down = vectors("broadcast", call("broadcast", server))
    if not isinstance(problem := call("problem", down, device, 0.5), Problem):
        raise InputError(f"{where}.problem must give a Problem, not {_kind(problem)}")
    reported = call("report", down, device, 0.5, Solution(theta, 1.0))
    if not isinstance(reported, tuple) or len(reported) != 2:
        raise InputError(
            f"{where}.report must give two things, the device's state and its upload, not {_kind(reported)}"
        )
    _, upload = (vectors("report", part) for part in reported)
    require_whole_state(algorithm, server, vectors("aggregate", call("aggregate", server, upload, 1, devices)))


def require_whole_state(algorithm: Algorithm, before: State, after: State) -> None:
    """The server's state has the same vectors after every round."""
    kinds, found = ({name: tuple(vector.shape) for name, vector in state.items()} for state in (before, after))
    if kinds != found:
        words = f"aggregate must give the whole of the server's state, {_listed(kinds)}, not {_listed(found)}"
        raise InputError(f"{type(algorithm).__name__}: {words}")


def _listed(kinds: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} of {math.prod(shape)}" for name, shape in kinds.items()) or "nothing"


def _kind(found: object) -> str:
    return "nothing (is there a return?)" if found is None else f"a {type(found).__name__}"


def _try_loss(model: FlatModel, x: Batch, y: torch.Tensor, refusal: str) -> None:
    """Besides errors, find what would train but not as meant: targets that broadcast, classes that cross-entropy
    ignores, a loss that is not a mean."""
    floating = model.loss is cross_entropy and y.is_floating_point()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Using a target size")
            _gradient(model, x, y)
            with torch.no_grad():
                output = model(x)
                once, twice = model.loss(output, y), model.loss(joined([output, output]), torch.cat([y, y]))
    except UserWarning as error:
        raise InputError(
            f"{refusal}: one output and one target have to be of one shape; targets of shape (n,) for outputs of shape "
            "(n, 1) are y[:, None]"
        ) from error
    except FeddynError:
        raise
    except Exception as error:
        hint = f"; {WHOLE}" if floating else ""
        raise InputError(f"{refusal}: {told(error)}{hint}") from error
    if model.loss is cross_entropy:
        if y.is_floating_point() and (output.shape != y.shape or y.dim() < 2 or y.shape[1] < 2):
            raise InputError(f"{refusal}: {WHOLE}")
        if not y.is_floating_point() and int(y.min()) < 0:
            raise InputError(f"{refusal}: there is a class {int(y.min())}; classes are numbered from 0")
    if once.dim() or not torch.allclose(once, twice, rtol=1e-3, equal_nan=True):
        raise InputError(f"{refusal}: the loss must be one number, the mean over the batch (reduction='mean')")


def _require_meant(loss: Loss, y: torch.Tensor, what: str) -> None:
    """Refuse numbers that a loss of probabilities would train on all the same."""
    if not y.is_floating_point() or y.dim() < 2:
        soft = torch.ones(0, dtype=torch.bool)
    else:
        soft = ((y < 0).flatten(1).any(1) | ((y.sum(1) - 1).abs() > NEARLY).reshape(len(y), -1).any(1)).cpu()
    if loss is cross_entropy and soft.any():
        raise InputError(
            f"the {what} targets are no probabilities of classes (row {int(soft.nonzero()[0])}: "
            f"{[round(number, 6) for number in y[int(soft.nonzero()[0])].flatten().tolist()[:5]]}), and {WHOLE}; for "
            'several labels of 0 and 1, loss=losses.binary, in a settings file loss = "binary-cross-entropy"'
        )
    if loss is binary and (wrong := (y < 0) | (y > 1)).any():
        raise InputError(
            f"the {what} targets have {y[wrong][0].item():g} among them: binary cross-entropy takes 0, 1 and what lies "
            "between; classes numbered from 0 want cross-entropy"
        )


def _gradient(model: FlatModel, x: Batch, y: torch.Tensor) -> None:
    """A gradient, after which `channels_last` is off if the model's code (such as `view`) cannot take that layout."""
    try:
        model.gradient(x, y)
    except RuntimeError:
        if not model.channels_last:
            raise
        model.channels_last = False
        model.gradient(x, y)


def telling_rows(x: Batch, y: torch.Tensor) -> torch.Tensor:
    """A few samples in which most of what can be wrong shows: the first, one in the middle, the extreme ones, and one
    of each class (of many, some)."""
    rows = {0, len(y) // 2, len(y) - 1, *(row for part in (*leaves(x), y) for row in _extreme_rows(part))}
    if y.dim() == 1 and not y.is_floating_point():
        first = np.unique(y.cpu().numpy(), return_index=True)[1].tolist()
        rows |= set(first[:: -(-len(first) // CLASSES)])
    return torch.tensor(sorted(rows), device=y.device)


def averages(loss: Loss, output: Batch, y: torch.Tensor) -> bool:
    """Whether the loss of a few samples is the mean of their single losses; also of one sample of every class with
    scores that no two classes have alike, since a class that is not among the samples may have another weight."""
    if loss is cross_entropy:
        return True
    batches = [(output, y)]
    if isinstance(output, torch.Tensor) and output.dim() == 2 and y.dim() == 1 and not y.is_floating_point():
        classes = torch.arange(0, output.shape[1], -(-output.shape[1] // CLASSES), device=y.device, dtype=y.dtype)
        scores = torch.linspace(0.1, 0.9, output.shape[1], device=output.device, dtype=output.dtype)
        batches.append((scores.expand(len(classes), -1), classes))
    try:
        return all(_is_mean(loss, *batch) for batch in batches)
    except Exception:
        return False  # it cannot be asked about one sample


def _is_mean(loss: Loss, output: Batch, y: torch.Tensor) -> bool:
    single = [float(loss(*one)) for one in zip(split(output, 1), y.split(1), strict=True)]
    return math.isclose(sum(single) / len(single), float(loss(output, y)), rel_tol=1e-5)


def _extreme_rows(data: torch.Tensor) -> list[int]:
    """The samples with the largest and the smallest class or token: one that the model does not know is among them."""
    if data.is_floating_point() or data.dtype == torch.bool:
        return []
    width = data[0].numel()
    return [int(data.argmax()) // width, int(data.argmin()) // width]
