"""A population of devices: who holds which samples, and the test set."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from feddyn.batches import Batch
from feddyn.data.transforms import Transform

if TYPE_CHECKING:
    import datasets
    from torch.utils.data import Dataset

    from feddyn.data.on_demand import OnDemand
    from feddyn.data.reading import Collate
    from feddyn.data.stored import Stored

Array: TypeAlias = torch.Tensor | npt.ArrayLike
Arrays: TypeAlias = Array | Mapping[str, Any] | tuple[Any, ...]
"""Samples of one input, or of several by name or by place, each an array with the samples along its first axis."""
Samples: TypeAlias = tuple[Batch, torch.Tensor]


class Rows(NamedTuple):
    """The samples of several devices in two arrays: device i has `sizes[i]` rows of them from `starts[i]` on."""

    x: Batch
    y: torch.Tensor
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


class Population(ABC):
    """Devices with their samples, and a test set. Make one with `from_arrays`, `from_parts`, `from_datasets`,
    `from_huggingface`, or with `on_demand` for more devices than memory holds.

    `origin` says how to make the population again, empty if it exists only in memory; `transform` makes a model's input
    of raw samples, batch by batch.
    """

    test: Samples | None
    origin: Mapping[str, Any]
    transform: Transform | None

    @property
    @abstractmethod
    def devices(self) -> int:
        """m, the number of devices."""

    @property
    @abstractmethod
    def total(self) -> int:
        """The number of samples of all devices."""

    @property
    @abstractmethod
    def evaluated(self) -> Samples:
        """What models are evaluated on: the test set, or the training data where there is none."""

    @abstractmethod
    def name(self, device: int) -> str:
        """What a device is called."""

    @abstractmethod
    def sizes_of(self, devices: Sequence[int]) -> npt.NDArray[np.int64]:
        """n_k of some devices."""

    @abstractmethod
    def samples(self, device: int) -> Samples:
        """The samples of one device."""

    @abstractmethod
    def rows(self, devices: Sequence[int]) -> Rows:
        """The samples of several devices."""

    @abstractmethod
    def excerpt(self) -> Samples:
        """Training samples to try a model with."""

    @abstractmethod
    def to(self, dtype: torch.dtype, device: torch.device) -> "Population":
        """The same population with its floating-point data in a model's type, all of it on the model's device."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What stands in a setting for a population that has no origin."""

    def __repr__(self) -> str:
        from feddyn.data.picture import words

        return words(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: sizes, and how the classes are distributed."""
        from feddyn.data.picture import html

        return html(self)

    def size(self, device: int) -> int:
        """n_k of one device."""
        return int(self.sizes_of([device])[0])

    def shares_of(self, devices: Sequence[int]) -> npt.NDArray[np.float64]:
        """share_k = n_k / mean(n) of some devices."""
        return np.multiply(self.sizes_of(devices), self.devices / self.total, dtype=np.float64)

    def share(self, device: int) -> float:
        """share_k of one device."""
        return float(self.shares_of([device])[0])

    @staticmethod
    def from_arrays(
        x: Arrays,
        y: Array,
        device: Array,
        *,
        test: tuple[Arrays, Array] | None = None,
        transform: Transform | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> "Stored":
        """Samples `x`, targets `y`, and for each sample the device that holds it. Samples of several inputs are a dict
        or tuple of arrays: the model is called with them by name, model(**x), or by place, model(*x).

        A device column of whole numbers from 0 numbers the devices; anything else (names, user ids) names them, and
        they are numbered in sorted order. Without a test set, models are evaluated on the training data.
        """
        from feddyn.data.stored import from_arrays

        return from_arrays(x, y, device, test, transform, origin)

    @staticmethod
    def from_parts(
        x: Arrays,
        y: Array,
        parts: Sequence[npt.ArrayLike],
        *,
        test: tuple[Arrays, Array] | None = None,
        transform: Transform | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> "Stored":
        """Samples `x`, targets `y`, and for each device the numbers of its samples, as the splits of
        `feddyn.data.partition` give them."""
        from feddyn.data.stored import from_parts

        return from_parts(x, y, parts, test, transform, origin)

    @staticmethod
    def from_datasets(
        datasets: "Sequence[Dataset[Any]]",
        *,
        test: "Dataset[Any] | None" = None,
        collate: "Collate | None" = None,
        transform: Transform | None = None,
    ) -> "Stored":
        """A torch Dataset for each device, and one for the test set; all are read at once.

        Items are (sample, target) pairs; a sample is a tensor, or a dict or tuple of tensors. `collate` makes all items
        one batch (samples, targets), as a DataLoader's collate_fn does: `feddyn.data.reading.padded` fills up sequences
        of unequal lengths.
        """
        from feddyn.data.reading import from_datasets

        return from_datasets(datasets, test, collate, transform)

    @staticmethod
    def from_huggingface(
        dataset: "datasets.Dataset | Sequence[datasets.Dataset]",
        *,
        label: str | Sequence[str],
        device: object = None,
        inputs: str | Sequence[str] | None = None,
        test: "datasets.Dataset | None" = None,
        pad: float | None = None,
        transform: Transform | None = None,
    ) -> "Stored":
        """A Hugging Face data set; all of it is read at once.

        device: the column that says whose a row is, or a partitioner of Flower Datasets; a list of data sets has one
        for each device. inputs: a column, or several, which go to the model by their names, model(**x) (default: all
        others). pad: sequences of unequal lengths are filled up with it. Texts have to be tokens already.
        """
        from feddyn.data.huggingface import from_huggingface

        return from_huggingface(dataset, label, device, inputs, test, pad, transform)

    @staticmethod
    def on_demand(
        make: Callable[[int], tuple[Arrays, Array]],
        sizes: Sequence[int] | npt.NDArray[np.int64],
        *,
        test: tuple[Arrays, Array],
        transform: Transform | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> "OnDemand":
        """Devices whose samples `make(device)` gives when the device is active; `sizes` says how many each has.

        It must give the same samples every time: draw random ones from a generator made from the device's number.
        """
        from feddyn.data.on_demand import OnDemand

        return OnDemand.of(make, sizes, test, transform, origin)
