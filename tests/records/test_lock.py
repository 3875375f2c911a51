"""The right to write to a record: who has it, who looks, and who cannot."""

import fcntl
from contextlib import ExitStack
from pathlib import Path

import pytest

from feddyn.records.lock import LOCK, InUseError, in_use, lock


def test_one_has_it_at_a_time(tmp_path: Path) -> None:
    assert not in_use(tmp_path)
    with lock(tmp_path):
        assert in_use(tmp_path)
        with pytest.raises(InUseError, match="is in use by a living process"), lock(tmp_path):
            pass
    assert not in_use(tmp_path)


def test_who_has_it_for_a_moment_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As somebody who looks does: the lock is free at the second look."""
    with ExitStack() as other:
        file = other.enter_context((tmp_path / LOCK).open("ab"))
        fcntl.flock(file, fcntl.LOCK_SH)
        monkeypatch.setattr("time.sleep", lambda seconds: other.close())
        with lock(tmp_path):
            assert file.closed


def test_who_may_not_write_can_still_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is mounted to be read."""
    opened = Path.open

    def read_only(self: Path, mode: str = "r") -> object:
        if mode != "rb":
            raise OSError(30, "Read-only file system")
        return opened(self, mode)

    with lock(tmp_path), monkeypatch.context() as patch:
        patch.setattr(Path, "open", read_only)
        assert in_use(tmp_path)
    monkeypatch.setattr(Path, "open", read_only)
    assert not in_use(tmp_path)
