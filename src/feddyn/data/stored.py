"""A population whose samples are in memory, or mapped from a file."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt
import torch

from feddyn.data.population import Array, Population, Rows, Samples
from feddyn.data.transforms import Transform
from feddyn.errors import InputError
from feddyn.identity import describe, raw_bytes, unseen_in

if TYPE_CHECKING:
    from torch.utils.data import Dataset

TYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)
"""Of samples; those in UNSIGNED become int64, since torch can do little with them."""
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@final
@dataclass(frozen=True, eq=False)
class Stored(Population):
    """Devices with their samples, one device after the other in `x` and `y`; device k has the rows
    offsets[k] to offsets[k+1]."""

    x: torch.Tensor = field(repr=False)
    y: torch.Tensor = field(repr=False)
    offsets: npt.NDArray[np.int64] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    test: Samples | None = field(default=None, repr=False)
    origin: Mapping[str, Any] = field(default_factory=dict)
    transform: Transform | None = None

    @property
    def devices(self) -> int:
        return len(self.names)

    @property
    def total(self) -> int:
        return len(self.y)

    @property
    def evaluated(self) -> Samples:
        return self.test or (self.x, self.y)

    @property
    def sizes(self) -> list[int]:
        """n_k, the number of samples of each device."""
        return [int(size) for size in np.diff(self.offsets)]

    def name(self, device: int) -> str:
        return self.names[device]

    def sizes_of(self, devices: Sequence[int]) -> npt.NDArray[np.int64]:
        rows = np.asarray(devices)
        sizes: npt.NDArray[np.int64] = self.offsets[rows + 1] - self.offsets[rows]
        return sizes

    def samples(self, device: int) -> Samples:
        """The samples of one device, as views."""
        rows = slice(int(self.offsets[device]), int(self.offsets[device + 1]))
        return self.x[rows], self.y[rows]

    def rows(self, devices: Sequence[int]) -> Rows:
        """The samples of several devices, where they are."""
        return Rows(self.x, self.y, self.offsets[devices], self.sizes_of(devices))

    def excerpt(self) -> Samples:
        return self.x, self.y

    def pooled(self) -> "Stored":
        """The same data in the hands of a single device: centralised training."""
        origin = {**self.origin, "pooled": True} if self.origin else {}
        return replace(self, offsets=np.array([0, len(self.y)]), names=("everybody",), origin=origin)

    def to(self, dtype: torch.dtype, device: torch.device) -> "Stored":
        x, y = (convert(data, dtype, device) for data in (self.x, self.y))
        test = (
            None if self.test is None else (convert(self.test[0], dtype, device), convert(self.test[1], dtype, device))
        )
        return replace(self, x=x, y=y, test=test)

    def identity(self) -> dict[str, Any]:
        counts = {"devices": self.devices, "samples": self.total}
        return {**counts, "sha256": self.sha256(), **unseen_in(self.transform)}

    def sha256(self) -> str:
        """A hash of every sample, target and owner."""
        digest = hashlib.sha256(repr((self.offsets.tolist(), self.names, describe(self.transform))).encode())
        for part in (self.x, self.y, *(self.test or ())):
            digest.update(repr((part.dtype, tuple(part.shape))).encode())
            digest.update(raw_bytes(part))
        return digest.hexdigest()


def from_arrays(
    x: Array,
    y: Array,
    device: Array,
    test: tuple[Array, Array] | None = None,
    transform: Transform | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Stored:
    """See `Population.from_arrays`."""
    samples, targets = as_samples(x, y, "the training data")
    owner = np.asarray(device)
    if owner.shape != (len(targets),):
        raise InputError(
            f"the device column has shape {owner.shape}, but there are {len(targets)} samples: give one each"
        )
    try:
        names, numbers, counts = np.unique(owner, return_inverse=True, return_counts=True)
    except TypeError:
        raise InputError("the device column mixes types: use whole numbers from 0, or names as strings") from None
    if np.issubdtype(owner.dtype, np.inexact) or (names.dtype.kind in "iu" and names[0] < 0):
        raise InputError(f"the device column holds {names[0]!r}: use whole numbers from 0, or names as strings")
    if names.dtype.kind in "iu" and names[0] == 0 and names[-1] != len(names) - 1:
        empty = next(k for k, name in enumerate(names) if name != k)
        raise InputError(
            f"device {empty} has no samples: every device from 0 to {names[-1]} needs at least one "
            "(if the numbers are names, give them as strings)"
        )
    parts = np.split(np.argsort(numbers, kind="stable"), np.cumsum(counts)[:-1])
    population = from_parts(samples, targets, parts, test, transform, origin)
    return replace(population, names=tuple(str(name) for name in names))


def from_parts(
    x: Array,
    y: Array,
    parts: Sequence[npt.ArrayLike],
    test: tuple[Array, Array] | None = None,
    transform: Transform | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Stored:
    """See `Population.from_parts`."""
    samples, targets = as_samples(x, y, "the training data")
    rows = [np.asarray(part, dtype=np.int64) for part in parts]
    for k, part in enumerate(rows):
        if part.ndim != 1 or len(part) == 0:
            raise InputError(f"device {k} has no samples: every device needs at least one")
        if part.min() < 0 or part.max() >= len(targets):
            raise InputError(f"device {k} is given a sample that is not among the {len(targets)} there are")
    order = torch.from_numpy(np.concatenate(rows)) if rows else torch.zeros(0, dtype=torch.int64)
    if len(order) == 0:
        raise InputError("a population needs at least one device")
    return Stored(
        x=samples[order],
        y=targets[order],
        offsets=np.cumsum([0, *map(len, rows)]),
        names=tuple(map(str, range(len(rows)))),
        test=None if test is None else as_samples(*test, "the test set", like=samples),
        origin=dict(origin or {}),
        transform=transform,
    )


def from_datasets(datasets: "Sequence[Dataset[Any]]", test: "Dataset[Any] | None" = None) -> Stored:
    """See `Population.from_datasets`."""
    devices = [_read(data, f"device {k}") for k, data in enumerate(datasets)]
    for k, (x, _) in enumerate(devices):
        if x.shape[1:] != devices[0][0].shape[1:] or x.dtype != devices[0][0].dtype:
            raise InputError(
                f"device {k} has samples of shape {tuple(x.shape[1:])} ({x.dtype}), device 0 of "
                f"{tuple(devices[0][0].shape[1:])} ({devices[0][0].dtype}): make them alike"
            )
    if not devices:
        raise InputError("a population needs at least one device")
    owner = np.repeat(np.arange(len(devices)), [len(x) for x, _ in devices])
    x, y = (torch.cat(parts) for parts in zip(*devices, strict=True))
    return from_arrays(x, y, owner, None if test is None else _read(test, "the test set"))


def convert(data: torch.Tensor, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Floating-point data in a type, all data on a device."""
    return data.to(device=device, dtype=dtype if data.is_floating_point() else data.dtype)


def as_samples(x: Array, y: Array, what: str, like: torch.Tensor | None = None) -> Samples:
    """Both as tensors that agree with each other: integer targets as int64, everything finite."""
    samples, targets = tensor(x, what), tensor(y, f"{what}'s targets")
    if samples.is_sparse or targets.is_sparse:
        raise InputError(f"{what} is a sparse tensor: make it dense, x.to_dense()")
    if samples.dim() == 0 or targets.dim() == 0 or len(samples) == 0:
        raise InputError(f"{what} holds no samples")
    if len(samples) != len(targets):
        raise InputError(f"{what} has {len(samples)} samples but {len(targets)} targets: give one each")
    if like is not None and samples.shape[1:] != like.shape[1:]:
        raise InputError(
            f"{what} has samples of shape {tuple(samples.shape[1:])}, the training data of {tuple(like.shape[1:])}"
        )
    for name, data in ((what, samples), (f"{what}'s targets", targets)):
        if data.is_floating_point() and not bool(data.isfinite().all()):
            row = int((~data.isfinite()).reshape(len(data), -1).any(1).nonzero()[0])
            raise InputError(
                f"{name} holds a value that is NaN or infinite, first in row {row}: clean or drop that row"
            )
    return samples, targets if targets.is_floating_point() else targets.long()


def _read(data: "Dataset[Any]", what: str) -> Samples:
    """A torch Dataset as two tensors."""
    items = [data[i] for i in range(len(data))]  # type: ignore[arg-type]
    if not items:
        raise InputError(f"{what} has no samples")
    try:
        x, y = zip(*items, strict=True)
        return torch.stack([torch.as_tensor(v) for v in x]), torch.stack([torch.as_tensor(v) for v in y])
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what} must hold (sample, target) pairs of tensors of one shape: {error}") from None


def tensor(data: Array, what: str) -> torch.Tensor:
    """Anything that is an array as a tensor; `what` says whose, for the sentence if it is none."""
    if not isinstance(data, torch.Tensor):
        try:
            array = np.asarray(data)
        except ValueError as error:
            raise InputError(f"{what} cannot be read as an array: {error}") from None
        if array.dtype.kind not in "biuf":
            raise InputError(f"{what} has the type {array.dtype}: give numbers, whole or floating-point")
        wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
        native = np.dtype(np.float64) if wide else array.dtype.newbyteorder("=")
        data = torch.from_numpy(np.require(array, native, requirements=["C", "W"]))
    if data.dtype in UNSIGNED:
        data = data.long()
    if data.dtype not in TYPES or data.device.type == "meta":
        raise InputError(f"{what} has the type {data.dtype} on {data.device}: give numbers, whole or floating-point")
    return data.detach()
