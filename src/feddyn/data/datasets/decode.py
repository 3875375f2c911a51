"""How the published files of each data set are read. Nothing here executes what it reads but pickles, and those only
after their checksum was verified."""

import gzip
import io
import pickle
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.errors import InputError

Bytes: TypeAlias = npt.NDArray[np.uint8]
EMNIST_NAMES = (
    "emnist-letters-train-images-idx3-ubyte.gz",
    "emnist-letters-train-labels-idx1-ubyte.gz",
    "emnist-letters-test-images-idx3-ubyte.gz",
    "emnist-letters-test-labels-idx1-ubyte.gz",
)


class Arrays(NamedTuple):
    """A data set: images (n, channels, height, width) and labels, to train and to test."""

    x: Bytes
    y: Bytes
    test_x: Bytes
    test_y: Bytes


Decoder: TypeAlias = Callable[[Sequence[Path]], Arrays]


def agreeing(arrays: Arrays) -> Arrays:
    """The arrays, if there is a label for every image."""
    for part, x, y in (("train", arrays.x, arrays.y), ("test", arrays.test_x, arrays.test_y)):
        if x.ndim != 4 or y.ndim != 1 or len(x) != len(y) or len(y) == 0:
            raise ValueError(f"the images to {part} have the shape {x.shape}, but their labels {y.shape}")
    return arrays


def read_idx(path: Path) -> Bytes:
    """An IDX file of bytes, packed or not: two zero bytes, the type 8, the number of axes, their lengths, the data."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    zero, kind, axes = struct.unpack(">HBB", raw[:4])
    shape = struct.unpack(f">{axes}I", raw[4 : 4 + 4 * axes])
    data = np.frombuffer(raw, np.uint8, offset=4 + 4 * axes)
    if zero != 0 or kind != 8 or data.size != np.prod(shape):
        raise ValueError(f"{path.name} is not an IDX file of {shape} bytes")
    return data.reshape(shape)


def idx(paths: Sequence[Path]) -> Arrays:
    """Training images and labels, test images and labels, as MNIST is published."""
    x, y, test_x, test_y = (read_idx(path) for path in paths)
    return Arrays(x[:, None], y, test_x[:, None], test_y)


def _first_letters(arrays: Arrays) -> Arrays:
    """The letters A to J, labelled 1 to 10 as published, as classes 0 to 9."""
    agreeing(arrays)
    train, test = arrays.y <= 10, arrays.test_y <= 10
    return Arrays(arrays.x[train], arrays.y[train] - 1, arrays.test_x[test], arrays.test_y[test] - 1)


def emnist_idx(paths: Sequence[Path]) -> Arrays:
    """The letters split of EMNIST, images transposed as published, cut down to EMNIST-L."""
    return _first_letters(idx(paths))


def emnist_zip(paths: Sequence[Path]) -> Arrays:
    """The same from the archive gzip.zip."""
    with zipfile.ZipFile(paths[0]) as archive, tempfile.TemporaryDirectory() as folder:
        members = [Path(archive.extract(f"gzip/{name}", folder)) for name in EMNIST_NAMES]
        return emnist_idx(members)


def emnist_matlab(paths: Sequence[Path]) -> Arrays:
    """The same from the file emnist-letters.mat."""
    try:
        from scipy.io import loadmat
    except ImportError:
        raise InputError(
            "EMNIST's MATLAB file needs scipy: pip install 'feddyn[matlab]', or use the gzip files"
        ) from None
    data = loadmat(io.BytesIO(paths[0].read_bytes()))["dataset"][0, 0]
    parts = []
    for part in ("train", "test"):
        images, labels = data[part][0, 0]["images"], data[part][0, 0]["labels"]
        parts += [np.ascontiguousarray(images).reshape(-1, 1, 28, 28), np.ravel(labels).astype(np.uint8)]
    return _first_letters(Arrays(*parts))


def _cifar_rows(rows: Bytes, labels: int) -> tuple[Bytes, Bytes]:
    """Images and the last of `labels` label bytes, from rows of label bytes and 3,072 pixels."""
    table = rows.reshape(-1, labels + 3072)
    return table[:, labels:].reshape(-1, 3, 32, 32), table[:, labels - 1]


def cifar_binary(train: Sequence[str], test: str, labels: int) -> Decoder:
    """The binary version as an archive: rows of `labels` label bytes and 3,072 pixels."""

    def decode(paths: Sequence[Path]) -> Arrays:
        with tarfile.open(paths[0]) as archive:
            members = {Path(member.name).name: member for member in archive.getmembers()}

            def rows(names: Sequence[str]) -> Bytes:
                streams = [archive.extractfile(members[name]) for name in names]
                return np.frombuffer(b"".join(stream.read() for stream in streams if stream), np.uint8)

            return Arrays(*_cifar_rows(rows(train), labels), *_cifar_rows(rows([test]), labels))

    return decode


def cifar_batches(key: bytes) -> Decoder:
    """The Python version unpacked: pickles, opened because their checksums were verified; the last one is the test."""

    def decode(paths: Sequence[Path]) -> Arrays:
        batches = [pickle.loads(path.read_bytes(), encoding="bytes") for path in paths]
        *train, test = [
            (np.asarray(batch[b"data"], np.uint8).reshape(-1, 3, 32, 32), np.asarray(batch[key], np.uint8))
            for batch in batches
        ]
        return Arrays(np.concatenate([x for x, _ in train]), np.concatenate([y for _, y in train]), *test)

    return decode


def cifar_python(names: Sequence[str], key: bytes) -> Decoder:
    """The Python version as an archive, whose checksum was verified."""

    def decode(paths: Sequence[Path]) -> Arrays:
        with tarfile.open(paths[0]) as archive, tempfile.TemporaryDirectory() as folder:
            archive.extractall(folder, filter="data")
            found = {path.name: path for path in Path(folder).rglob("*")}
            return cifar_batches(key)([found[name] for name in names])

    return decode
