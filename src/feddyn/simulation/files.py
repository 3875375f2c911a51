"""Files that are whole or not there: written beside their place, on disk before they take it."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

CHUNK = 1 << 20


def write_whole(path: Path, chunks: Iterable[bytes | memoryview]) -> str:
    """Write a file so that whoever looks, also after a crash, finds all of it or what was there before; its SHA-256."""
    digest, beside = hashlib.sha256(), path.with_name(f".{path.name}.part")
    with beside.open("wb") as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_directory(path.parent)
    return digest.hexdigest()


def sync_directory(directory: Path) -> None:
    """Let the names in a directory survive a power failure."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """The hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
