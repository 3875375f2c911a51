"""The paper's federations by name: a source and a split make a population."""

from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from feddyn.checks import require_whole
from feddyn.data import partition
from feddyn.data.columns import arrays
from feddyn.data.datasets import shakespeare, sources
from feddyn.data.datasets.published import SOURCES
from feddyn.data.partition import Parts
from feddyn.data.stored import Stored, from_arrays, from_parts
from feddyn.data.transforms import Images, Tokens
from feddyn.errors import InputError

Split: TypeAlias = Literal["iid", "class-exact", "dirichlet", "dirichlet-by-class", "shards", "file"]

TRAIN_FRACTION = 0.8
"""Of a role's samples, in the order in which they are spoken; the rest is for the test."""


def images(
    source: str,
    *,
    devices: int = 100,
    split: Split = "iid",
    concentration: float | None = None,
    classes_per_device: int | None = None,
    sigma: float = 0.0,
    file: str | None = None,
    augment: bool | None = None,
    seed: int = 0,
) -> Stored:
    """An image data set over devices.

    concentration: of the Dirichlet splits. classes_per_device: shards for each device. sigma: of lognormal sizes, for
    the iid and dirichlet splits (0: equal). file: a saved split. augment: flip and crop, by default for CIFAR only.
    """
    require_whole(source, "seed", seed, 0)
    arrays = sources.load(source)
    about = SOURCES[source]
    parts = split_labels(arrays.y, devices, split, concentration, classes_per_device, sigma, file, seed)
    axes = (0, 2, 3)
    mean = about.mean or tuple((arrays.x.mean(axes, dtype=np.float64) / 255).tolist())
    std = about.std or tuple((arrays.x.std(axes, dtype=np.float64) / 255).tolist())
    options = {"concentration": concentration, "classes_per_device": classes_per_device, "file": file}
    origin = {"source": source, "devices": len(parts), "split": split, **_given(options)}
    augmented = about.augment if augment is None else augment
    return from_parts(
        arrays.x,
        arrays.y,
        parts,
        test=(arrays.test_x, arrays.test_y),
        transform=Images(mean, std, augmented),
        origin={**origin, "sigma": float(sigma), "augment": augmented, "seed": seed},
    )


def split_labels(
    labels: partition.Labels,
    devices: int,
    split: Split,
    concentration: float | None = None,
    classes_per_device: int | None = None,
    sigma: float = 0.0,
    file: str | None = None,
    seed: int = 0,
) -> Parts:
    """A split by its name; parameters that it needs must be given, and others must not."""
    needs = {"dirichlet": "concentration", "dirichlet-by-class": "concentration", "shards": "classes_per_device"}
    needs["file"] = "file"
    given = {"concentration": concentration, "classes_per_device": classes_per_device, "file": file}
    for name, value in given.items():
        if (needs.get(split) == name) != (value is not None):
            raise InputError(f"the split {split!r} {'needs' if value is None else 'has no'} {name}")
    if sigma and split not in ("iid", "dirichlet"):
        raise InputError(f"the split {split!r} makes sizes of its own: leave out sigma, or use iid or dirichlet")
    y = np.asarray(labels)
    if file is not None:
        return load_split(Path(file), len(y))
    sizes = partition.lognormal_sizes(len(y), devices, sigma, seed=seed) if sigma else None
    if split == "dirichlet" and concentration is not None:
        return partition.dirichlet(y, devices, concentration, seed=seed, sizes=sizes)
    if split == "dirichlet-by-class" and concentration is not None:
        return partition.dirichlet_by_class(y, devices, concentration, seed=seed)
    if split == "shards" and classes_per_device is not None:
        return partition.shards(y, devices, classes_per_device, seed=seed)
    if split == "class-exact":
        return partition.class_exact(y, devices, seed=seed)
    return partition.iid(y, devices, seed=seed, sizes=sizes)


def save_split(parts: Parts, path: Path) -> None:
    """A split as a small file that others can use: two arrays of whole numbers."""
    if path.exists():
        raise InputError(f"{path} exists: nothing is overwritten, choose another name")
    order = np.concatenate(parts).astype(np.uint32)
    with path.open("xb") as stream:
        np.savez_compressed(stream, order=order, sizes=np.array([len(part) for part in parts], dtype=np.uint32))


def load_split(path: Path, samples: int) -> Parts:
    """A saved split of so many samples."""
    found = arrays(path)
    if missing := {"order", "sizes"} - found.keys():
        raise InputError(f"the split {path} has no array {min(missing)!r}: write it with feddyn partition")
    order, sizes = found["order"].astype(np.int64), found["sizes"].astype(np.int64)
    if len(order) != sizes.sum() or not np.array_equal(np.sort(order), np.arange(samples)):
        raise InputError(f"the split {path} is not one of {samples} samples, each exactly once")
    return np.split(order, np.cumsum(sizes)[:-1])


def speeches(
    *,
    devices: int = 100,
    split: Literal["natural", "iid"] = "natural",
    samples: int = 2000,
    test_samples: int = 400,
    seed: int = 0,
) -> Stored:
    """Shakespeare's roles as devices ('natural'), or the same samples over devices at random ('iid').

    Roles are drawn among those with enough samples. A role's first 80% of samples are for training and its last 20% for
    the test, less the 80 between whose characters overlap; of each, a contiguous run is taken at a random start.
    """
    for name, value in (("devices", devices), ("samples", samples), ("test_samples", test_samples)):
        require_whole("shakespeare", name, value, 1)
    require_whole("shakespeare", "seed", seed, 0)
    corpus = sources.load_shakespeare()
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    cut = (corpus.samples * TRAIN_FRACTION).astype(np.int64)
    rest = corpus.samples - cut - shakespeare.LENGTH
    enough = np.flatnonzero((cut >= samples) & (rest >= test_samples))
    if devices > len(enough):
        raise InputError(
            f"shakespeare: only {len(enough)} roles have {samples} + {test_samples} samples, not {devices}"
        )
    roles = np.sort(rng.choice(enough, devices, replace=False))
    starts, test_starts = [], []
    for role in roles:
        first = corpus.offsets[role]
        starts.append(first + rng.integers(cut[role] - samples + 1) + np.arange(samples))
        behind = first + cut[role] + shakespeare.LENGTH
        test_starts.append(behind + rng.integers(rest[role] - test_samples + 1) + np.arange(test_samples))
    order = np.concatenate(starts)
    if split == "iid":
        order = rng.permutation(order)
    x, y = shakespeare.windows(corpus.codes, order)
    return from_arrays(
        x,
        y,
        np.repeat(np.arange(devices), samples),
        test=shakespeare.windows(corpus.codes, np.concatenate(test_starts)),
        transform=Tokens(),
        origin={
            "source": "shakespeare",
            "devices": devices,
            "split": split,
            "samples": samples,
            "test_samples": test_samples,
            "seed": seed,
        },
    )


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
