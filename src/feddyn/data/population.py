"""A population of devices: who holds which samples, and the test set."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from feddyn.errors import InputError

Array: TypeAlias = torch.Tensor | npt.ArrayLike
Samples: TypeAlias = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Population:
    """Devices with their samples, one device after the other in `x` and `y`; device k has the rows
    offsets[k] to offsets[k+1]. `origin` says how to make the population again, empty if it exists only in memory."""

    x: torch.Tensor
    y: torch.Tensor
    offsets: tuple[int, ...]
    names: tuple[str, ...]
    test: Samples | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        x: Array,
        y: Array,
        device: Array,
        *,
        test: tuple[Array, Array] | None = None,
        origin: Mapping[str, Any] = {},
    ) -> "Population":
        """Samples `x`, targets `y`, and for each sample the device that holds it.

        A device column of whole numbers from 0 numbers the devices; anything else (names, user ids) names them, and
        they are numbered in sorted order. Without a test set, models are evaluated on the training data.
        """
        samples, targets = _samples(x, y, "the training data")
        owner = np.asarray(device)
        if owner.shape != (len(targets),):
            raise InputError(
                f"the device column has shape {owner.shape}, but there are {len(targets)} samples: give one each"
            )
        names, numbers, counts = np.unique(owner, return_inverse=True, return_counts=True)
        if np.issubdtype(owner.dtype, np.floating) or (names.dtype.kind in "iu" and names[0] < 0):
            raise InputError(f"the device column holds {names[0]!r}: use whole numbers from 0, or names as strings")
        if names.dtype.kind in "iu" and names[0] == 0 and names[-1] != len(names) - 1:
            empty = next(k for k, name in enumerate(names) if name != k)
            raise InputError(
                f"device {empty} has no samples: every device from 0 to {names[-1]} needs at least one "
                "(if the numbers are names, give them as strings)"
            )
        order = torch.from_numpy(np.argsort(numbers, kind="stable"))
        return cls(
            x=samples[order],
            y=targets[order],
            offsets=(0, *np.cumsum(counts).tolist()),
            names=tuple(str(name) for name in names),
            test=None if test is None else _samples(*test, "the test set", like=samples),
            origin=origin,
        )

    @property
    def devices(self) -> int:
        """m, the number of devices."""
        return len(self.names)

    @property
    def sizes(self) -> list[int]:
        """n_k, the number of samples of each device."""
        return [end - start for start, end in zip(self.offsets, self.offsets[1:], strict=False)]

    def size(self, device: int) -> int:
        """n_k of one device."""
        return self.offsets[device + 1] - self.offsets[device]

    def share(self, device: int) -> float:
        """share_k = n_k / mean(n)."""
        return self.size(device) * self.devices / len(self.y)

    def samples(self, device: int) -> Samples:
        """The samples of one device, as views."""
        rows = slice(self.offsets[device], self.offsets[device + 1])
        return self.x[rows], self.y[rows]

    def pooled(self) -> "Population":
        """The same data in the hands of a single device: centralised training."""
        origin = {**self.origin, "pooled": True} if self.origin else {}
        return Population(self.x, self.y, (0, len(self.y)), ("everybody",), self.test, origin)

    def to(self, dtype: torch.dtype, device: torch.device) -> "Population":
        """The same population with its floating-point data in a model's type, all of it on the model's device."""

        def convert(data: torch.Tensor) -> torch.Tensor:
            return data.to(device=device, dtype=dtype if data.is_floating_point() else data.dtype)

        test = None if self.test is None else (convert(self.test[0]), convert(self.test[1]))
        return Population(convert(self.x), convert(self.y), self.offsets, self.names, test, self.origin)

    def sha256(self) -> str:
        """A hash of every sample, target and owner."""
        digest = hashlib.sha256(repr((self.offsets, self.names)).encode())
        for part in (self.x, self.y, *(self.test or ())):
            digest.update(repr((part.dtype, tuple(part.shape))).encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def _samples(x: Array, y: Array, what: str, like: torch.Tensor | None = None) -> Samples:
    """Both as tensors that agree with each other: integer targets as int64, everything finite."""
    samples, targets = _tensor(x, what), _tensor(y, f"{what}'s targets")
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


def _tensor(data: Array, what: str) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        return data.detach()
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InputError(f"{what} cannot be read as an array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} has the type {array.dtype}: give numbers")
    return torch.from_numpy(np.ascontiguousarray(array))
