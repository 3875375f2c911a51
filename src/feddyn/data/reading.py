"""Populations of torch Datasets, and how their items become batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset

from feddyn.batches import Batch, joined, leaves, taken
from feddyn.data.population import Samples
from feddyn.data.stored import Stored, from_arrays
from feddyn.data.transforms import Transform
from feddyn.errors import InputError
from feddyn.origin import told

Collate: TypeAlias = Callable[[Sequence[Any]], tuple[Batch, Any]]
"""Items of a Dataset -> a batch of samples, and their targets."""
IGNORED = -100
"""The target of what is filled up, which PyTorch's losses leave out."""


def padded(items: Sequence[Any], value: float = 0, target: int = IGNORED) -> Samples:
    """(sample, target) pairs of unequal lengths as one batch: every tensor is filled up with `value` at the end of its
    first axis to the length of the longest, targets that are sequences with `target`.

    An attention mask of ones is filled up with zeros, as it should be. For another value a part, write a collate
    function of your own with `torch.nn.utils.rnn.pad_sequence`.
    """
    samples, targets = zip(*items, strict=True)
    return _stacked(samples, value), _stacked(targets, target)


def from_datasets(
    datasets: "Sequence[Dataset[Any]]",
    test: "Dataset[Any] | None" = None,
    collate: Collate | None = None,
    transform: Transform | None = None,
) -> Stored:
    """A population of one torch Dataset for each device; see `Population.from_datasets`."""
    if isinstance(datasets, Dataset | DataLoader):
        raise InputError("from_datasets takes a list of Datasets, one for each device: write [dataset_0, dataset_1]")
    names = [f"device {k}" for k in range(len(datasets))]
    if not names:
        raise InputError("a population needs at least one device")
    read = [_items(data, name) for data, name in zip(datasets, names, strict=True)]
    held_out = None if test is None else _items(test, "the test set")
    owner = np.repeat(np.arange(len(read)), [len(items) for items in read])
    if collate is not None:
        x, y = _collated(collate, [item for items in (*read, held_out or ()) for item in items])
        rest = slice(len(owner), None)
        tested = None if held_out is None else (taken(x, rest), y[rest])
        return from_arrays(taken(x, slice(len(owner))), y[: len(owner)], owner, tested, transform)
    devices = [_pairs(items, name) for items, name in zip(read, names, strict=True)]
    first = _kinds(devices[0][0])
    for name, (x, _) in zip(names, devices, strict=True):
        if _kinds(x) != first:
            raise InputError(f"{name} has samples of shape {_kinds(x)}, device 0 of {first}: make them alike")
    x, y = (joined(parts) for parts in zip(*devices, strict=True))
    return from_arrays(x, y, owner, None if held_out is None else _pairs(held_out, "the test set"), transform)


def _items(data: "Dataset[Any]", what: str) -> list[Any]:
    """All items of a Dataset."""
    if isinstance(data, DataLoader):
        raise InputError(f"{what} is a DataLoader: give its Dataset (loader.dataset), batches are made by the solver")
    if isinstance(data, IterableDataset) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise InputError(
            f"{what} is no Dataset with a length and items by number: read it into a list first, list(data)"
        )
    items = [data[i] for i in range(len(data))]
    if not items:
        raise InputError(f"{what} has no samples")
    return items


def _pairs(items: Sequence[Any], what: str) -> Samples:
    """Items as two batches."""
    try:
        x, y = zip(*items, strict=True)
        return _stacked(x), _stacked(y)
    except (TypeError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(
            f"{what} must hold (sample, target) pairs of tensors of one shape: {str(error).splitlines()[0]} (for "
            "sequences of unequal lengths: collate=feddyn.data.reading.padded)"
        ) from None


def _collated(collate: Collate, items: Sequence[Any]) -> Samples:
    """All items as somebody's own function makes them one batch."""
    try:
        x, y = collate(items)
        y = torch.as_tensor(y)
    except Exception as error:  # whatever somebody's own code raises
        raise InputError(f"collate does not make (samples, targets) of the items: {told(error)}") from error
    lengths = {len(leaf) for leaf in (*leaves(x), y)}
    if lengths != {len(items)}:
        found = " and ".join(map(str, sorted(lengths)))
        raise InputError(f"collate makes batches of {found} samples of {len(items)} items: give one each")
    return x, y


def _stacked(samples: Sequence[Any], fill: float | None = None) -> Batch:
    """Samples of one form as a batch; with `fill`, their first axes are filled up to one length."""
    if isinstance(samples[0], Mapping):
        return {name: _stacked([sample[name] for sample in samples], fill) for name in samples[0]}
    if isinstance(samples[0], tuple):
        return tuple(_stacked(part, fill) for part in zip(*samples, strict=True))
    tensors = [torch.as_tensor(sample) for sample in samples]
    if fill is None or tensors[0].dim() == 0:
        return torch.stack(tensors)
    return pad_sequence(tensors, batch_first=True, padding_value=fill)


def _kinds(batch: Batch) -> Any:
    """The shapes and types of a sample."""
    if isinstance(batch, torch.Tensor):
        return (*batch.shape[1:], str(batch.dtype))
    return {k: _kinds(part) for k, part in (batch.items() if isinstance(batch, Mapping) else enumerate(batch))}
