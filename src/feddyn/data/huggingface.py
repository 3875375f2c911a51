"""Populations of Hugging Face's data sets, by a column or by a partitioner of Flower Datasets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.utils.rnn import pad_sequence

from feddyn.batches import Batch, taken
from feddyn.data.stored import Stored, from_arrays
from feddyn.data.transforms import Transform
from feddyn.errors import InputError, nearest

if TYPE_CHECKING:
    import datasets


def from_huggingface(
    dataset: "datasets.Dataset | Sequence[datasets.Dataset]",
    label: str | Sequence[str],
    device: object,
    inputs: str | Sequence[str] | None,
    test: "datasets.Dataset | None",
    pad: float | None,
    transform: Transform | None,
) -> Stored:
    """See `Population.from_huggingface`."""
    parts, column = _parts(dataset, device)
    for part in (*parts, *([] if test is None else [test])):
        if not hasattr(part, "column_names") or not hasattr(part, "with_format"):
            raise InputError(
                f"from_huggingface takes a datasets.Dataset, or a list of them, not a {type(part).__name__}"
            )
        if not hasattr(part, "num_rows") or isinstance(part.column_names, dict):
            raise InputError("from_huggingface takes one split that is loaded: dataset['train'], without streaming")
    labels = [label] if isinstance(label, str) else list(label)
    others = [name for name in parts[0].column_names if name not in (*labels, column)]
    chosen = [inputs] if isinstance(inputs, str) else list(others if inputs is None else inputs)
    if not chosen or not labels:
        raise InputError("from_huggingface: there is no column left for the inputs, or no label")
    sizes = [part.num_rows for part in parts]
    if 0 in sizes:
        raise InputError(f"device {sizes.index(0)} has no samples: every device needs at least one")
    whole = [*parts, *([] if test is None else [test])]
    read = {name: _column(whole, name, pad) for name in (*chosen, *labels)}
    cut = sum(sizes)
    owner = np.repeat(np.arange(len(parts)), sizes) if column is None else _names(parts[0], column)
    by_name = len(chosen) > 1 or not (inputs is None or isinstance(inputs, str))
    samples: Batch = {name: read[name] for name in chosen} if by_name else read[chosen[0]]
    targets = read[labels[0]] if isinstance(label, str) else torch.stack([read[name].double() for name in labels], 1)

    first, rest = slice(cut), slice(cut, None)
    held_out = None if test is None else (taken(samples, rest), targets[rest])
    return from_arrays(taken(samples, first), targets[first], owner, held_out, transform)


def _parts(dataset: Any, device: Any) -> tuple[list[Any], str | None]:
    """The devices' data sets, or one data set and the column that says whose a row is."""
    if isinstance(dataset, list | tuple):
        if device is not None or not dataset:
            raise InputError("from_huggingface: a list has one data set for each device: leave out device")
        return list(dataset), None
    if isinstance(device, str):
        return [dataset], device
    if not hasattr(device, "load_partition") or not hasattr(device, "is_dataset_assigned"):
        raise InputError(
            "from_huggingface: device must be the name of a column, or a partitioner of Flower Datasets, such as "
            "IidPartitioner(num_partitions=10)"
        )
    if not device.is_dataset_assigned():
        device.dataset = dataset
    return [device.load_partition(k) for k in range(device.num_partitions)], None


def _names(dataset: Any, column: str) -> npt.NDArray[Any]:
    """The devices' names, or numbers from 0."""
    values = _values(dataset, column)
    if None in values:
        raise InputError(f"the column {column!r} has no value in row {values.index(None)}: drop that row")
    whole = all(isinstance(value, int) for value in values)
    return np.asarray(values if whole and set(values) == set(range(len(set(values)))) else [str(v) for v in values])


def _values(dataset: Any, name: str) -> list[Any]:
    if name not in dataset.column_names:
        raise InputError(f"the data set has no column {name!r}; {nearest(name, dataset.column_names)}")
    return list(dataset.with_format(None)[:][name])


def _column(parts: Sequence[Any], name: str, pad: float | None) -> torch.Tensor:
    """A column of several data sets as one tensor; images with their channels in front."""
    rows = [value for part in parts for value in _values(part, name)]
    if any(value is None for value in rows):
        raise InputError(f"the column {name!r} has no value in row {rows.index(None)}: drop that row")
    arrays = [np.asarray(value) for value in rows]
    odd = next((array.dtype for array in arrays if array.dtype.kind not in "biuf"), None)
    if odd is not None:
        what = "texts: make tokens of them first, dataset.map(...)" if odd.kind == "U" else f"the type {odd}"
        raise InputError(f"the column {name!r} has {what}, which no model takes")
    if type(parts[0].features[name]).__name__ == "Image":
        arrays = [array[None] if array.ndim == 2 else array.transpose(2, 0, 1) for array in arrays]
    if len({array.shape for array in arrays}) == 1:
        return torch.from_numpy(np.stack(arrays))
    if pad is None or len({array.shape[1:] for array in arrays}) > 1:
        raise InputError(
            f"the column {name!r} holds arrays of unequal shapes: with pad=0, sequences are filled up with zeros at "
            "their end"
        )
    return pad_sequence([torch.from_numpy(array) for array in arrays], batch_first=True, padding_value=pad)
