"""Devices whose samples are made, or read, when they are active, so that a million devices need no memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch

from feddyn.batches import joined
from feddyn.data.population import Array, Arrays, Population, Rows, Samples
from feddyn.data.stored import as_samples, as_test, convert, fingerprint
from feddyn.data.transforms import Transform
from feddyn.errors import InputError
from feddyn.identity import describe, unseen_in


@final
@dataclass(frozen=True, eq=False, repr=False)
class OnDemand(Population):
    """Device k has the `counts[k]` samples that `make(k)` gives. It needs a test set to be evaluated on."""

    make: Callable[[int], tuple[Arrays, Array]]
    counts: npt.NDArray[np.int64]
    test: Samples
    transform: Transform | None
    origin: Mapping[str, Any]
    kind: tuple[torch.dtype | None, torch.device | None] = (None, None)

    @classmethod
    def of(
        cls,
        make: Callable[[int], tuple[Arrays, Array]],
        sizes: Sequence[int] | npt.NDArray[np.int64],
        test: tuple[Arrays, Array],
        transform: Transform | None,
        origin: Mapping[str, Any] | None,
    ) -> "OnDemand":
        counts = np.asarray(sizes)
        if counts.ndim != 1 or len(counts) == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise InputError("sizes must hold for each device how many samples it has: whole numbers of at least 1")
        if not callable(make):
            raise InputError(f"make must be a function of a device's number, not {make!r}")
        first, _ = as_samples(*make(0), "device 0")
        checked = as_test(test, like=first)
        return cls(make, counts.astype(np.int64), checked, transform, dict(origin or {}))

    @property
    def devices(self) -> int:
        return len(self.counts)

    @cached_property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def evaluated(self) -> Samples:
        return self.test

    def name(self, device: int) -> str:
        return str(device)

    def sizes_of(self, devices: Sequence[int]) -> npt.NDArray[np.int64]:
        return self.counts[devices]

    def samples(self, device: int) -> Samples:
        x, y = as_samples(*self.make(device), f"device {device}", like=self.test[0])
        if len(y) != self.counts[device]:
            raise InputError(f"device {device} was given {len(y)} samples, but its size is {self.counts[device]}")
        dtype, where = self.kind
        return (x, y) if dtype is None or where is None else (convert(x, dtype, where), convert(y, dtype, where))

    def rows(self, devices: Sequence[int]) -> Rows:
        parts = [self.samples(k) for k in devices]
        x, y = (joined(column) for column in zip(*parts, strict=True))
        sizes = self.sizes_of(devices)
        return Rows(x, y, np.cumsum(sizes) - sizes, sizes)

    def excerpt(self) -> Samples:
        return self.samples(0)

    def to(self, dtype: torch.dtype, device: torch.device) -> "OnDemand":
        x, y = (convert(data, dtype, device) for data in self.test)
        return replace(self, test=(x, y), kind=(dtype, device))

    def identity(self) -> dict[str, Any]:
        """The hash covers the sizes, the first device and the test set, not devices that nobody has asked for yet."""
        first = self.counts.tobytes() + repr((describe(self.make), describe(self.transform))).encode()
        digest = fingerprint(first, *self.samples(0), *self.test)
        counts = {"devices": self.devices, "samples": self.total}
        return {**counts, "sha256": digest, **unseen_in(self.make, self.transform)}
