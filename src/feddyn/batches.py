"""Batches of samples: a tensor or, for models of several inputs or outputs, a dict or tuple of batches. All tensors of
a batch have the samples along their first axis.

A model is called with a tensor as model(x), with a dict as model(**x), with a tuple as model(*x).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

Batch: TypeAlias = Any
"""torch.Tensor | Mapping[str, Batch] | tuple[Batch, ...]"""


def leaves(batch: Batch) -> list[torch.Tensor]:
    """The tensors of a batch."""
    if isinstance(batch, torch.Tensor):
        return [batch]
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, tuple | list) else ()
    return [leaf for part in parts for leaf in leaves(part)]


def mapped(function: Callable[..., torch.Tensor], batch: Batch, *others: Batch) -> Batch:
    """A batch of the same form, made of the tensors of one batch, or of several of one form. What is no tensor (an
    output may have other things in it) stays as it is."""
    if isinstance(batch, torch.Tensor):
        return function(batch, *others)
    if isinstance(batch, Mapping):
        parts = {name: mapped(function, part, *(other[name] for other in others)) for name, part in batch.items()}
        return parts if type(batch) is dict else type(batch)(parts)  # type: ignore[call-arg]
    if isinstance(batch, tuple | list):
        found = [mapped(function, *part) for part in zip(batch, *others, strict=True)]
        return type(batch)(*found) if hasattr(batch, "_fields") else type(batch)(found)
    return batch


def taken(batch: Batch, rows: torch.Tensor | slice) -> Batch:
    """Some samples of a batch, by their numbers (a copy) or as a slice (views)."""
    return mapped(lambda leaf: leaf[rows] if isinstance(rows, slice) else leaf.index_select(0, rows), batch)


def split(batch: Batch, size: int) -> list[Batch]:
    """A batch in parts of at most so many samples."""
    if isinstance(batch, torch.Tensor):
        return list(batch.split(size))
    return [taken(batch, slice(at, at + size)) for at in range(0, len(leaves(batch)[0]), size)]


def joined(batches: Sequence[Batch]) -> Batch:
    """Batches of one form, one after the other."""
    return mapped(lambda *parts: torch.cat(parts), *batches)


def owned(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies on the CPU that share no memory with each other, as safetensors takes them."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def arguments(batch: Batch) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A batch as the arguments of a model."""
    if isinstance(batch, Mapping):
        return (), dict(batch)
    return (batch if isinstance(batch, tuple) else (batch,)), {}


def form(batch: Batch, first: int = 1) -> str:
    """The shapes and types of one sample in words, for sentences."""
    if isinstance(batch, torch.Tensor):
        return f"{tuple(batch.shape[first:])} {batch.dtype}"
    if isinstance(batch, Mapping):
        return "{" + ", ".join(f"{name}: {form(part, first)}" for name, part in batch.items()) + "}"
    return "(" + ", ".join(form(part, first) for part in batch) + ")"
