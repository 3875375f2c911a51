"""Who gets which samples: labels in, one list of sample numbers for each device out.

Every function gives each sample to exactly one device, takes its random numbers from `seed` only, and gives no device
nothing at all.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.errors import InputError

Rows: TypeAlias = npt.NDArray[np.int64]
Parts: TypeAlias = list[Rows]
Labels: TypeAlias = npt.ArrayLike

NEGLIGIBLE = 1e-9
"""A device whose remaining classes have less prior probability than this draws them by what is left of each."""
TRIES = 100
"""How often a split that leaves a device without samples is drawn again."""


def iid(labels: Labels, devices: int, *, seed: int = 0, sizes: Sequence[int] | None = None) -> Parts:
    """A random split, into parts of equal size (as near as can be) or of the given sizes."""
    y, rng = _check(labels, devices), np.random.default_rng(seed)
    return _cut(rng.permutation(len(y)), _sizes(sizes, len(y), devices))


def class_exact(labels: Labels, devices: int, *, seed: int = 0) -> Parts:
    """A random split in which each device has the same number of every class (the paper's IID split of CIFAR-100).

    What does not divide evenly goes, class after class, to the devices in turn, so that no two differ by more than one.
    """
    y, rng = _check(labels, devices), np.random.default_rng(seed)
    by_class = np.concatenate([rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)])
    return [np.sort(by_class[k::devices]) for k in rng.permutation(devices)]


def dirichlet(
    labels: Labels, devices: int, concentration: float, *, seed: int = 0, sizes: Sequence[int] | None = None
) -> Parts:
    """Split by a class prior for each device, as in the paper: prior_k ~ Dirichlet(concentration, ..., concentration).

    Until all samples are given away: a device that has room is drawn at random, a class from its prior, and a sample of
    that class without replacement. A class that has run out is drawn again, which is to draw from the prior restricted
    to the classes that are left; so that is what happens here, without the wait. Where the prior of all that is left is
    negligible, the class is drawn by what is left of each.
    """
    y, rng = _check(labels, devices), np.random.default_rng(seed)
    _positive("concentration", concentration)
    room = list(_sizes(sizes, len(y), devices))
    classes, left = np.unique(y, return_counts=True)
    stacks = [rng.permutation(np.flatnonzero(y == c)).tolist() for c in classes]
    priors = rng.dirichlet(np.full(len(classes), concentration), devices)
    cumulative = _cumulative(priors, left)
    open_devices = [k for k in range(devices) if room[k]]
    parts: list[list[int]] = [[] for _ in range(devices)]
    for who, what in rng.random((len(y), 2)).tolist():
        at = int(who * len(open_devices))
        k = open_devices[at]
        c = bisect_right(cumulative[k], what)
        parts[k].append(stacks[c].pop())
        if not stacks[c]:
            cumulative = _cumulative(priors, np.array([len(stack) for stack in stacks]))
        room[k] -= 1
        if not room[k]:
            open_devices[at] = open_devices[-1]
            open_devices.pop()
    return [np.sort(np.array(part, dtype=np.int64)) for part in parts]


def dirichlet_by_class(labels: Labels, devices: int, concentration: float, *, seed: int = 0) -> Parts:
    """A split by a device prior for each class (Hsu et al., 2019): class c goes to the devices in parts ~ Dirichlet.

    The devices' sizes follow from the draw; a draw that leaves a device without samples is drawn again.
    """
    y, rng = _check(labels, devices), np.random.default_rng(seed)
    _positive("concentration", concentration)
    for _ in range(TRIES):
        parts: list[list[Rows]] = [[] for _ in range(devices)]
        for c in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == c))
            ends = np.cumsum(rng.dirichlet(np.full(devices, concentration)))[:-1]
            for k, piece in enumerate(np.split(rows, np.round(ends * len(rows)).astype(int))):
                parts[k].append(piece)
        found = [np.sort(np.concatenate(pieces)) for pieces in parts]
        if all(len(rows) for rows in found):
            return found
    raise InputError(
        f"dirichlet by class: {TRIES} draws each left one of {devices} devices without samples; "
        f"use fewer devices or a larger concentration than {concentration}"
    )


def shards(labels: Labels, devices: int, classes: int, *, seed: int = 0) -> Parts:
    """Shards of the samples sorted by class, so many (`classes`) for each device (McMahan et al., 2017)."""
    y, rng = _check(labels, devices), np.random.default_rng(seed)
    if isinstance(classes, bool) or classes < 1 or classes * devices > len(y):
        raise InputError(f"shards: {classes} for each of {devices} devices cannot be cut from {len(y)} samples")
    order = np.argsort(y + rng.random(len(y)) * 0.5, kind="stable")  # by class, at random within a class
    pieces = np.array_split(order, devices * classes)
    dealt = rng.permutation(devices * classes).reshape(devices, classes)
    return [np.sort(np.concatenate([pieces[i] for i in hand])) for hand in dealt]


def lognormal_sizes(total: int, devices: int, sigma: float, *, seed: int = 0) -> list[int]:
    """Unequal sizes from lognormal(log(mean size), sigma), scaled so that every sample is used; at least 1 each."""
    if not 1 <= devices <= total:
        raise InputError(f"{total} samples cannot be split over {devices} devices")
    if not 0 <= sigma < np.inf:
        raise InputError(f"sigma must be a finite number of at least 0, not {sigma}")
    raw = np.random.default_rng(seed).lognormal(0, sigma, devices)
    ends = np.round(np.cumsum(raw) / raw.sum() * (total - devices)).astype(int)
    return [int(size) for size in np.diff(ends, prepend=0) + 1]


def _check(labels: Labels, devices: int) -> npt.NDArray[np.int64]:
    y = np.asarray(labels)
    if y.ndim != 1 or y.dtype.kind not in "biu":
        raise InputError(
            f"a split needs one whole number as the class of each sample, not {y.dtype} of shape {y.shape}"
        )
    if isinstance(devices, bool) or not 1 <= devices <= len(y):
        raise InputError(f"{len(y)} samples cannot be split over {devices} devices")
    return y.astype(np.int64)


def _positive(name: str, value: float) -> None:
    if not 0 < value < np.inf:
        raise InputError(f"{name} must be a finite number above 0, not {value}")


def _sizes(sizes: Sequence[int] | None, total: int, devices: int) -> list[int]:
    if sizes is None:
        return [int(size) for size in np.diff(np.linspace(0, total, devices + 1).astype(int))]
    if len(sizes) != devices or min(sizes) < 1 or sum(sizes) != total:
        raise InputError(f"sizes must be {devices} whole numbers of at least 1 that add up to {total}")
    return list(sizes)


def _cut(order: Rows, sizes: Sequence[int]) -> Parts:
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


def _cumulative(priors: npt.NDArray[np.float64], left: npt.NDArray[np.int64]) -> list[list[float]]:
    """Cumulative class probabilities of each device; classes that have run out have probability 0."""
    remaining = priors * (left > 0)
    total = remaining.sum(1, keepdims=True)
    by_count = np.broadcast_to(left / max(1, left.sum()), priors.shape)
    share = np.where(total > NEGLIGIBLE, remaining / np.maximum(total, NEGLIGIBLE), by_count)
    ends = np.cumsum(share, axis=1)
    # a rounded end below 1 must not let a draw fall behind the last class that is left
    last = len(left) - 1 - int(np.argmax(left[::-1] > 0))
    ends[:, last:] = np.inf
    return [row.tolist() for row in ends]
