"""Files that are whole or not there."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from feddyn.records.files import sha256, write_whole


def test_a_file_is_written_whole_and_its_hash_is_that_of_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert write_whole(file, [b"one", memoryview(b" two")]) == hashlib.sha256(b"one two").hexdigest() == sha256(file)
    assert file.read_bytes() == b"one two"
    assert list(tmp_path.iterdir()) == [file]


def test_who_fails_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    def half() -> Iterator[bytes]:
        yield b"new"
        raise OSError(28, "No space left on device")

    file = tmp_path / "file"
    write_whole(file, [b"old"])
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, half())
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]  # and nothing that keeps the disk full
