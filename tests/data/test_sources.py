"""Published files: found, verified, downloaded and read; and what is said when something is wrong with them."""

import gzip
import hashlib
import http.server
import io
import pickle
import struct
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.io import savemat

import feddyn
from feddyn import cli
from feddyn.data.datasets import decode, files, published, sources
from feddyn.data.datasets.files import File
from feddyn.data.datasets.published import Form, Source

RNG = np.random.default_rng(0)


def idx(array: np.ndarray[Any, Any]) -> bytes:
    """An IDX file of bytes, as MNIST's publishers define it."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def small_mnist() -> dict[str, bytes]:
    """The four files of a data set of 6 + 4 images of 3 x 3."""
    x, y = RNG.integers(0, 256, (10, 3, 3)), RNG.integers(0, 10, 10)
    parts = {"train-images": x[:6], "train-labels": y[:6], "t10k-images": x[6:], "t10k-labels": y[6:]}
    return {f"{name}.gz": gzip.compress(idx(part)) for name, part in parts.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("FEDDYN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def small_source(content: dict[str, bytes], addresses: Sequence[str]) -> Source:
    """A small data set, published at these addresses."""
    known = tuple(
        File(name, (md5(data), md5(gzip.decompress(data))), tuple(f"{address}/{name}" for address in addresses))
        for name, data in content.items()
    )
    return Source("small", (Form(known, ("small", "Small/raw"), decode.idx),), (0.5,), (0.5,))


@pytest.fixture
def small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A small data set `small`, published at an address that does not answer; its files are not there yet."""
    content = small_mnist()
    monkeypatch.setattr(sources, "SOURCES", {"small": small_source(content, ["http://127.0.0.1:9"])})
    monkeypatch.setattr(files, "RETRIES", 0)
    return content


def put(folder: Path, content: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        (folder / name).write_bytes(data)


class Server(http.server.BaseHTTPRequestHandler):
    """Serves what it is given, for the tests' own downloads."""

    content: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        data = self.content.get(self.path.lstrip("/"))
        self.send_response(200 if data is not None else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("place", ["small", "Small/raw"])
@pytest.mark.parametrize("form", ["as published", "packed again", "unpacked"])
def test_files_that_are_there_are_used(folder: Path, small: dict[str, bytes], place: str, form: str) -> None:
    content = dict(small)
    if form == "packed again":
        content = {name: gzip.compress(gzip.decompress(data), mtime=1) for name, data in small.items()}
        assert content != small
    if form == "unpacked":
        content = {name.removesuffix(".gz"): gzip.decompress(data) for name, data in small.items()}
    put(folder / place, content)
    arrays = sources.load("small")
    assert arrays.x.shape == (6, 1, 3, 3)
    assert arrays.test_y.shape == (4,)
    assert idx(arrays.x[:, 0]) == gzip.decompress(small["train-images.gz"])


def test_the_second_start_maps_the_decoded_arrays(folder: Path, small: dict[str, bytes]) -> None:
    put(folder / "small", small)
    first = sources.load("small")
    for name in small:
        (folder / "small" / name).unlink()
    second = sources.load("small")
    assert isinstance(second.x, np.memmap)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert [path.name for path in (folder / "decoded").iterdir()] == ["small"]


def test_a_wrong_checksum_or_a_truncated_file_is_refused(folder: Path, small: dict[str, bytes]) -> None:
    for damage in (lambda data: data[:-20], lambda data: data[:30] + b"x" + data[31:], lambda data: b""):
        put(folder / "small", {**small, "train-images.gz": damage(small["train-images.gz"])})
        with pytest.raises(feddyn.InputError, match=r"train-images.gz is not the published file.*remove it"):
            sources.load("small")
        assert not (folder / "decoded").exists()


def test_a_missing_file_without_a_network_is_one_sentence(folder: Path, small: dict[str, bytes]) -> None:
    put(folder / "small", {name: data for name, data in small.items() if name != "t10k-labels.gz"})
    with pytest.raises(feddyn.InputError, match=r"t10k-labels.gz cannot be downloaded: .* import FOLDER"):
        sources.load("small")
    assert "t10k-labels.gz" not in {path.name for path in folder.rglob("*")}


def test_downloads_are_checked_and_nothing_broken_stays(
    folder: Path, small: dict[str, bytes], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_twice = small_source(small, ["http://127.0.0.1:9", address])
    monkeypatch.setattr(sources, "SOURCES", {"small": published_twice})
    Server.content = {**small, "train-labels.gz": small["train-labels.gz"][:-5]}
    with pytest.raises(feddyn.InputError, match=r"train-labels.gz cannot be downloaded: .* another checksum"):
        sources.load("small")
    assert {path.name for path in (folder / "small").iterdir()} == {"train-images.gz"}
    Server.content = small
    assert len(sources.load("small").y) == 6


def test_a_folder_that_cannot_be_written_to(
    small: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FEDDYN_DATA", str(tmp_path / "file" / "data"))
    with pytest.raises(feddyn.InputError, match=r"cannot be written to .* set FEDDYN_DATA"):
        sources.load("small")


def test_a_cache_that_cannot_be_written_to_is_done_without(folder: Path, small: dict[str, bytes]) -> None:
    put(folder / "small", small)
    (folder / "decoded").write_text("in the way")
    assert len(sources.load("small").y) == 6


def test_importing_a_folder(folder: Path, small: dict[str, bytes], tmp_path: Path) -> None:
    put(tmp_path / "downloads" / "deep", {**small, "unrelated.gz": b"x"})
    put(tmp_path / "downloads" / "bad", {"train-images.gz": b"damaged"})
    assert sources.take_all(tmp_path / "downloads") == {"small": 4}
    assert len(sources.load("small").y) == 6
    assert "4 files" in sources.check("small")
    with pytest.raises(feddyn.InputError, match="there is no folder"):
        sources.take_all(tmp_path / "nowhere")


def test_importing_a_part_says_so(
    folder: Path,
    small: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is there is kept, and the rest may come from another folder."""
    first, *rest = small
    put(tmp_path / "a", {first: small[first]})
    put(tmp_path / "b", {name: small[name] for name in rest})
    for place, words in (("a", "small: 1 file, which is not all of it: import the rest"), ("b", "small: 3 files")):
        monkeypatch.setattr(sys, "argv", ["feddyn", "data", "import", str(tmp_path / place)])
        with pytest.raises(SystemExit) as done:
            cli.main()
        assert done.value.code == 0
        assert words in capsys.readouterr().out
    assert len(sources.load("small").y) == 6


def test_unknown_names_are_refused(folder: Path) -> None:
    with pytest.raises(feddyn.InputError, match="did you mean 'mnist'"):
        sources.load("mnits")


def test_no_pickle_is_opened_before_its_checksum_matched(folder: Path, tmp_path: Path) -> None:
    """A CIFAR-10 batch whose pickle would write a file: it is refused, and the file is not written."""

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "executed",))

    put(folder / "cifar-10-batches-py", {file.name: pickle.dumps(Evil()) for file in published.CIFAR10_BATCHES})
    with pytest.raises(feddyn.InputError, match="is not the published file"):
        sources.load("cifar10")
    assert not (tmp_path / "executed").exists()


def test_idx_files_that_are_not(tmp_path: Path) -> None:
    good = idx(np.zeros((2, 3)))
    for bad in (good[:-1], b"\x00\x00\x09" + good[3:], b"", b"\x00"):
        (tmp_path / "file").write_bytes(bad)
        with pytest.raises((ValueError, struct.error)):
            decode.read_idx(tmp_path / "file")


def letters() -> decode.Arrays:
    """Letters 1 to 26 as EMNIST publishes them."""
    y = np.tile(np.arange(1, 27, dtype=np.uint8), 2)
    x = RNG.integers(0, 256, (52, 28, 28)).astype(np.uint8)
    return decode.Arrays(x, y, x[:26], y[:26])


def test_emnist_in_its_three_official_forms(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gzip IDX files, the archive of them, and the MATLAB file give the same A to J, as classes 0 to 9."""
    whole = letters()
    packed = {name: gzip.compress(idx(part)) for name, part in zip(decode.EMNIST_NAMES, whole, strict=True)}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as written:
        for name, data in packed.items():
            written.writestr(f"gzip/{name}", data)
    matlab = io.BytesIO()
    halves = {
        half: {"images": x.reshape(-1, 784), "labels": y[:, None], "writers": y[:, None]}
        for half, x, y in (("train", whole.x, whole.y), ("test", whole.test_x, whole.test_y))
    }
    savemat(matlab, {"dataset": {**halves, "mapping": np.zeros((26, 3))}})
    put(folder, {"gzip.zip": archive.getvalue(), "emnist-letters.mat": matlab.getvalue(), **packed})
    found = [
        decode.emnist_idx([folder / name for name in decode.EMNIST_NAMES]),
        decode.emnist_zip([folder / "gzip.zip"]),
        decode.emnist_matlab([folder / "emnist-letters.mat"]),
    ]
    keep = whole.y <= 10
    for arrays in found:
        assert arrays.x.shape == (20, 1, 28, 28)
        assert arrays.test_x.shape == (10, 1, 28, 28)
        assert np.array_equal(arrays.y, whole.y[keep] - 1)
        assert np.array_equal(arrays.x[:, 0], whole.x[keep])


@pytest.mark.parametrize("labels", [1, 2])
def test_cifar_archives(tmp_path: Path, labels: int) -> None:
    """The binary and the Python version of the same images; CIFAR-100's second label is the fine one."""
    x = RNG.integers(0, 256, (6, 3, 32, 32)).astype(np.uint8)
    y = RNG.integers(0, 10, (6, labels)).astype(np.uint8)
    rows = np.concatenate([y, x.reshape(6, -1)], axis=1)
    key = b"labels" if labels == 1 else b"fine_labels"
    batches = {
        name: {b"data": x[rows_of].reshape(-1, 3072), key: y[rows_of, -1].tolist()}
        for name, rows_of in (("train", slice(4)), ("test", slice(4, 6)))
    }
    for name, members in (
        ("binary.tar.gz", {"train.bin": rows[:4].tobytes(), "test.bin": rows[4:].tobytes()}),
        ("python.tar.gz", {name: pickle.dumps(batch) for name, batch in batches.items()}),
    ):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            for member, data in members.items():
                info = tarfile.TarInfo(f"folder/{member}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    found = (
        decode.cifar_binary(["train.bin"], "test.bin", labels)([tmp_path / "binary.tar.gz"]),
        decode.cifar_python(["train", "test"], key)([tmp_path / "python.tar.gz"]),
    )
    for arrays in found:
        assert np.array_equal(arrays.x, x[:4])
        assert np.array_equal(arrays.y, y[:4, -1])
        assert np.array_equal(arrays.test_x, x[4:])
        assert np.array_equal(arrays.test_y, y[4:, -1])


def test_images_and_labels_of_unequal_length_are_refused(
    folder: Path, small: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In IDX files of any data set, before and after they are decoded, and in EMNIST's cut-down letters."""
    content = {**small, "t10k-labels.gz": gzip.compress(idx(np.zeros(3)))}
    monkeypatch.setattr(sources, "SOURCES", {"small": small_source(content, [])})
    put(folder / "small", content)
    with pytest.raises(feddyn.InputError, match=r"the images to test have the shape \(4, .* labels \(3,\)\): remove"):
        sources.load("small")
    put(folder / "small", small)
    monkeypatch.setattr(sources, "SOURCES", {"small": small_source(small, [])})
    sources.load("small")
    np.save(folder / "decoded" / "small" / "y.npy", np.zeros(5, np.uint8))
    with pytest.raises(feddyn.InputError, match=r"the decoded data .* is damaged .* remove that folder"):
        sources.load("small")
    whole = letters()
    parts = [whole.x, whole.y[:-1], whole.test_x, whole.test_y]
    put(folder, {name: gzip.compress(idx(part)) for name, part in zip(decode.EMNIST_NAMES, parts, strict=True)})
    with pytest.raises(ValueError, match="the images to train have the shape"):
        decode.emnist_idx([folder / name for name in decode.EMNIST_NAMES])


def empty_archive() -> bytes:
    stream = io.BytesIO()
    zipfile.ZipFile(stream, "w").close()
    return stream.getvalue()


def test_damaged_files_without_published_checksums(folder: Path) -> None:
    """EMNIST's single files are read as they are, and Shakespeare's text must give LEAF's counts."""
    whole = letters()
    packed = {name: gzip.compress(idx(part)) for name, part in zip(decode.EMNIST_NAMES, whole, strict=True)}
    for damaged in (packed[decode.EMNIST_NAMES[0]][:-30], b"", gzip.compress(b"not IDX at all")):
        put(folder / "EMNIST/raw", {**packed, decode.EMNIST_NAMES[0]: damaged})
        with pytest.raises(feddyn.InputError, match=r"cannot be read .*: remove and fetch them again"):
            sources.load("emnist-l")
    assert not (folder / "decoded").exists()
    for text in (b"", b"\xff\xfe broken", b"PK\x03\x04 broken archive", b"x\n" * 10, empty_archive()):
        put(folder / "shakespeare", {"pg100_shakespeare.txt": text})
        with pytest.raises(feddyn.InputError, match=r"pg100_shakespeare.txt|has no plays"):
            sources.load_shakespeare()
    play = "by William Shakespeare\n" * 3
    put(folder / "shakespeare", {"pg100_shakespeare.txt": play.encode()})
    with pytest.raises(feddyn.InputError):
        sources.load_shakespeare()
