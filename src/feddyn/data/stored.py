"""A population whose samples are in memory, or mapped from a file."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch

from feddyn.batches import Batch, form, leaves, mapped, taken
from feddyn.data.population import Array, Arrays, Population, Rows, Samples
from feddyn.data.transforms import Transform
from feddyn.errors import InputError
from feddyn.identity import describe, raw_bytes, unseen_in

TYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)
"""Of samples; those in UNSIGNED become int64, since torch can do little with them."""
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Stored(Population):
    """Devices with their samples, one device after the other in `x` and `y`; device k has the rows
    offsets[k] to offsets[k+1]."""

    x: Batch
    y: torch.Tensor
    offsets: npt.NDArray[np.int64]
    names: tuple[str, ...]
    test: Samples | None = None
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
        return taken(self.x, rows), self.y[rows]

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
        test = self.test and (convert(self.test[0], dtype, device), convert(self.test[1], dtype, device))
        return replace(self, x=x, y=y, test=test)

    def identity(self) -> dict[str, Any]:
        counts = {"devices": self.devices, "samples": self.total}
        return {**counts, "sha256": self.sha256(), **unseen_in(self.transform)}

    def sha256(self) -> str:
        """A hash of every sample, target and owner."""
        owners = repr((self.offsets.tolist(), self.names, describe(self.transform)))
        return fingerprint(owners.encode(), self.x, self.y, *(self.test or ()))


def fingerprint(first: bytes, *batches: Batch) -> str:
    """A hash of some bytes and of every number in some batches."""
    digest = hashlib.sha256(first)
    for batch in batches:
        if not isinstance(batch, torch.Tensor):
            digest.update(form(batch).encode())
        for part in leaves(batch):
            digest.update(repr((part.dtype, tuple(part.shape))).encode())
            digest.update(raw_bytes(part))
    return digest.hexdigest()


def from_arrays(
    x: Arrays,
    y: Array,
    device: Array,
    test: tuple[Arrays, Array] | None = None,
    transform: Transform | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Stored:
    """See `Population.from_arrays`."""
    samples, targets = as_samples(x, y, "the training data")
    names, numbers, counts = _devices(device, len(targets))
    parts = np.split(np.argsort(numbers, kind="stable"), np.cumsum(counts)[:-1])
    population = from_parts(samples, targets, parts, test, transform, origin)
    return replace(population, names=tuple(str(name) for name in names))


def _devices(device: Array, samples: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The devices in their order, the number of each sample's, and how many samples each has."""
    try:
        owner = np.asarray(device)
    except ValueError:
        raise InputError(
            "the device column has lists in it, of unequal lengths: give one device for each sample"
        ) from None
    if owner.shape != (samples,):
        raise InputError(f"the device column has shape {owner.shape}, but there are {samples} samples: give one each")
    missing = (
        [row for row, name in enumerate(owner) if name is None or name != name] if owner.dtype.kind in "OfM" else []
    )
    if missing:
        raise InputError(
            f"the device column has no value in row {missing[0]}: say whose sample it is, or drop that row"
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
    return names, numbers, counts


def from_parts(
    x: Arrays,
    y: Array,
    parts: Sequence[npt.ArrayLike],
    test: tuple[Arrays, Array] | None = None,
    transform: Transform | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Stored:
    """See `Population.from_parts`."""
    samples, targets = as_samples(x, y, "the training data")
    rows = [_rows(part, k) for k, part in enumerate(parts)]
    for k, part in enumerate(rows):
        if part.min() < 0 or part.max() >= len(targets):
            raise InputError(f"device {k} is given a sample that is not among the {len(targets)} there are")
    order = torch.from_numpy(np.concatenate(rows)) if rows else torch.zeros(0, dtype=torch.int64)
    if len(order) == 0:
        raise InputError("a population needs at least one device")
    return Stored(
        x=mapped(lambda leaf: leaf[order], samples),
        y=targets[order],
        offsets=np.cumsum([0, *map(len, rows)]),
        names=tuple(map(str, range(len(rows)))),
        test=None if test is None else as_test(test, like=samples),
        origin=dict(origin or {}),
        transform=transform,
    )


def _rows(part: npt.ArrayLike, device: int) -> npt.NDArray[np.int64]:
    """The rows of a device, which are numbers from 0; a mask of yes and no would be taken for rows 0 and 1."""
    rows = np.asarray(part)
    if rows.ndim == 1 and len(rows) and rows.dtype.kind not in "iu":
        hint = ": of a mask, numpy.flatnonzero(mask)" if rows.dtype.kind == "b" else ""
        raise InputError(f"the rows of device {device} are of the type {rows.dtype}: give their numbers, from 0{hint}")
    if rows.ndim != 1 or len(rows) == 0:
        raise InputError(f"device {device} has no samples: every device needs at least one")
    return rows.astype(np.int64)


def convert(data: Batch, dtype: torch.dtype, device: torch.device) -> Batch:
    """Floating-point data in a type, all data on a device."""
    return mapped(lambda leaf: leaf.to(device=device, dtype=dtype if leaf.is_floating_point() else leaf.dtype), data)


def as_test(test: object, like: Batch) -> Samples:
    """A test set's samples and targets, which are of the form of the training data's."""
    if not isinstance(test, tuple | list) or len(test) != 2:
        found = f"{len(test)} of them" if isinstance(test, tuple | list) else f"a {type(test).__name__}"
        raise InputError(f"the test set must be its samples and its targets, test=(x, y), not {found}")
    return as_samples(test[0], test[1], "the test set", like)


def as_samples(x: Arrays, y: Array, what: str, like: Batch | None = None) -> Samples:
    """Both as tensors that agree with each other: integer targets as int64, everything finite."""
    targets = tensor(y, f"{what}'s targets")
    samples = as_batch(x, what, len(targets) if targets.dim() else 0)
    if not leaves(samples):
        raise InputError(f"{what} holds no samples")
    for data in (*leaves(samples), targets):
        if data.is_sparse:
            raise InputError(f"{what} is a sparse tensor: make it dense, x.to_dense()")
    for data in leaves(samples):
        if data.dim() == 0 or targets.dim() == 0 or len(data) == 0:
            raise InputError(f"{what} holds no samples")
        if len(data) != len(targets):
            raise InputError(f"{what} has {len(data)} samples but {len(targets)} targets: give one each")
    if like is not None and _shapes(samples) != _shapes(like):
        raise InputError(f"{what} has samples of shape {_shapes(samples)}, the training data of {_shapes(like)}")
    named = [(what, data) for data in leaves(samples)]
    for name, data in (*named, (f"{what}'s targets", targets)):
        require_finite(data, name)
    return samples, targets if targets.is_floating_point() else targets.long()


def require_finite(data: torch.Tensor, what: str) -> None:
    """Refuse rows with a value that is NaN or infinite."""
    if data.is_floating_point() and not bool(data.isfinite().all()):
        row = int((~data.isfinite()).reshape(len(data), -1).any(1).nonzero()[0])
        raise InputError(f"{what} holds a value that is NaN or infinite, first in row {row}: clean or drop that row")


def as_batch(x: Arrays, what: str, count: int = -1) -> Batch:
    """Arrays as tensors; a tuple of arrays that is not one row for each of `count` samples is a tuple of inputs."""
    if isinstance(x, Mapping):
        return {str(name): as_batch(part, f"{what}'s {name}", count) for name, part in x.items()}
    arrays = (torch.Tensor, np.ndarray, Mapping)
    if isinstance(x, tuple) and len(x) != count and all(isinstance(part, arrays) for part in x):
        return tuple(as_batch(part, f"{what}'s input {i}", count) for i, part in enumerate(x))
    return tensor(x, what)


def _shapes(batch: Batch) -> Any:
    """The shapes of a sample."""
    if isinstance(batch, torch.Tensor):
        return tuple(batch.shape[1:])
    if isinstance(batch, Mapping):
        return {name: _shapes(part) for name, part in batch.items()}
    return [_shapes(part) for part in batch]


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
