"""The orders in which devices visit their samples, for many devices at once.

An order is the sorting of hashes of (seed, position), so it depends on the device's seed and on nothing else, and a
thousand of them cost one vectorised computation. The hash is the output function of SplitMix64 (Steele, Lea & Flood,
OOPSLA 2014), whose states are a seed plus multiples of a constant.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Seeds: TypeAlias = npt.NDArray[np.uint64]
Sizes: TypeAlias = npt.NDArray[np.int64]
STRIDE = np.uint64(0x9E3779B97F4A7C15)


def hashes(seeds: Seeds, positions: Seeds) -> Seeds:
    """The outputs of SplitMix64 at these positions of the streams of these seeds, 64 random bits each."""
    z: Seeds = seeds + STRIDE * (positions + np.uint64(1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def orders(seeds: Seeds, sizes: Sizes | Sequence[int], epochs: range) -> npt.NDArray[np.int64]:
    """Every device's samples in random order, epoch by epoch, (devices, epochs, largest size); behind a device's own
    samples stand numbers that it does not have."""
    size = np.asarray(sizes)
    longest = int(size.max())
    sample = np.arange(longest)
    position = np.asarray(epochs)[None, :, None].astype(np.uint64) << np.uint64(32) | sample.astype(np.uint64)
    with np.errstate(over="ignore"):
        keys = hashes(seeds[:, None, None], position)
    if int(size.min()) < longest:
        keys = np.where(sample < size[:, None, None], keys, np.iinfo(np.uint64).max)
    return np.argsort(keys, axis=-1, kind="stable")
