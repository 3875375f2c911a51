"""Published files: found where the user has them, or downloaded, and used only if their checksum is the publisher's."""

import gzip
import hashlib
import os
import shutil
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feddyn.errors import InputError

RETRIES = 3


@dataclass(frozen=True)
class File:
    """A published file: its name, the MD5 sums that are accepted, and where it can be downloaded.

    A gzip file may match by its content, so that one that was packed again, or unpacked, is known as well. A file
    without sums is of a published archive whose own sums are not published; its content is checked when it is decoded.
    """

    name: str
    md5: tuple[str, ...]
    urls: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it may have on disk: with and without .gz."""
        return (self.name, self.name.removesuffix(".gz")) if self.name.endswith(".gz") else (self.name,)


def home() -> Path:
    """The data folder: the environment variable FEDDYN_DATA, or feddyn's place in the user's cache."""
    if folder := os.environ.get("FEDDYN_DATA"):
        return Path(folder)
    import pooch

    return Path(pooch.os_cache("feddyn"))


def find(file: File, folders: Iterable[Path]) -> Path | None:
    """The file in the first of these folders that has it; one with a wrong checksum is an error."""
    for folder in folders:
        for name in file.names:
            if (path := folder / name).is_file():
                verify(path, file)
                return path
    return None


def verify(path: Path, file: File) -> None:
    """Refuse a file whose checksum is not the publisher's."""
    if file.md5 and not matches(path, file):
        raise InputError(
            f"{path} is not the published file (its MD5 checksum is not {file.md5[0]}): it is damaged or of another "
            "version; remove it and fetch it again"
        )


def matches(path: Path, file: File) -> bool:
    """Whether a file, or what is packed in it, has a checksum of the publisher's."""
    try:
        if md5(path, packed=False) in file.md5:
            return True
        return path.suffix == ".gz" and md5(path, packed=True) in file.md5
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def md5(path: Path, *, packed: bool) -> str:
    """The MD5 sum of a file, or of the content of a gzip file."""
    with gzip.open(path) if packed else path.open("rb") as stream:
        digest = hashlib.md5(usedforsecurity=False)
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def download(file: File, folder: Path, progress: Any = None) -> Path:
    """Download a file; it appears in the folder only when it is whole and its checksum is right."""
    import pooch
    import requests

    if not file.urls:
        raise InputError(f"{file.name} cannot be downloaded; see `feddyn data list` for where it comes from")
    writable(folder)
    pooch.get_logger().setLevel("ERROR")  # what goes wrong is said in one sentence, below
    problems = []
    for url in file.urls:
        try:
            downloader = pooch.HTTPDownloader(progressbar=progress if progress is not None else False, timeout=30)
            known = {file.name: f"md5:{file.md5[0]}" if file.md5 else None}
            store = pooch.create(folder, "", registry=known, urls={file.name: url}, retry_if_failed=RETRIES)
            return Path(store.fetch(file.name, downloader=downloader))
        except ValueError:
            problems.append(f"{url} gave a file with another checksum")
        except requests.RequestException as error:
            problems.append(f"{url} did not answer ({type(error).__name__})")
        except OSError as error:
            raise InputError(f"{file.name} cannot be written to {folder}: {error.strerror}") from None
    raise InputError(
        f"{file.name} cannot be downloaded: {'; '.join(problems)}; "
        "get it by other means and run `feddyn data import FOLDER`"
    )


def writable(folder: Path) -> None:
    """Make a folder, or say why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"the data folder {folder} cannot be written to ({error.strerror}): set FEDDYN_DATA to another one"
        ) from None


def take(files: Sequence[File], folder: Path, into: Path) -> list[Path]:
    """Copy the published files that lie anywhere below a folder; what has the name but not the checksum is left."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder} to import from")
    taken = []
    for file in files:
        candidates = sorted(path for name in file.names for path in folder.rglob(name) if path.is_file())
        good = next((path for path in candidates if not file.md5 or matches(path, file)), None)
        if good is not None:
            writable(into)
            if not (into / good.name).exists():
                partial = into / f".{good.name}.part"
                shutil.copyfile(good, partial)
                partial.replace(into / good.name)
            taken.append(into / good.name)
    return taken
