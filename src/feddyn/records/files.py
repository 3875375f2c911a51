"""Files that are whole or not there: written beside their place, on disk before they take it. Nothing is written
through a symbolic link, which may lead to files that are not ours."""

import hashlib
import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from feddyn.errors import InputError


def write_whole(path: Path, chunks: Iterable[bytes | memoryview], *, private: bool = False) -> str:
    """Write a file so that whoever looks, also after a crash, finds all of it or what was there before; its SHA-256.
    One that is `private` is its owner's alone."""
    digest, beside = hashlib.sha256(), path.with_name(f".{path.name}.part")
    beside.unlink(missing_ok=True)  # of a write that a crash cut off
    try:
        with beside.open("xb") as file:
            if private:
                beside.chmod(0o600)
            for chunk in chunks:
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)  # on a full disk, what was written of it would be in the way
        raise
    sync_directory(path.parent)
    return digest.hexdigest()


def write_code(directory: Path, files: Mapping[str, bytes]) -> None:
    """Keep the source files that a setting in a directory names, in its subdirectory `code`."""
    for name, source in files.items():
        path = directory / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [source])


def home(path: Path) -> Path:
    """The path with a leading ~ as the home directory: a shell does that only to words that begin with one."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise InputError(f"there is no home directory for {path}: write the whole path") from None


def sync_directory(directory: Path) -> None:
    """Let the names in a directory survive a power failure, where directories can be opened."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_links(directory: Path, *, itself: bool = False) -> None:
    """Refuse to write to a directory in or below which there is a symbolic link, or with `itself` that is one."""
    below = (Path(parent, name) for parent, *names in os.walk(directory) for name in itertools.chain(*names))
    for path in itertools.chain([directory] if itself else [], below):
        if path.is_symlink():
            raise InputError(
                f"{path} is a symbolic link, through which files elsewhere could be changed or removed: put what it "
                "points to in its place, or remove it"
            )


def sha256(path: Path) -> str:
    """The hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
