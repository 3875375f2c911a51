"""The right to write to a record: who has it, who looks, and who cannot."""

import threading
import time
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


def test_who_only_looks_keeps_nobody_out(tmp_path: Path) -> None:
    """Somebody looks all the time, and has the lock whenever he does."""
    done = threading.Event()
    (tmp_path / LOCK).touch()

    def look() -> None:
        while not done.is_set():
            in_use(tmp_path)
            time.sleep(0.001)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(50):
            with lock(tmp_path):
                pass
    finally:
        done.set()
        watcher.join()


def test_where_nobody_can_write_nobody_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is mounted to be read."""

    def refuse(*words: object, **more: object) -> None:
        raise OSError(30, "Read-only file system")

    (tmp_path / LOCK).touch()
    monkeypatch.setattr(Path, "open", refuse)
    assert not in_use(tmp_path)
