"""Work side by side in processes: what it yields, how it fails, and how it ends."""

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from feddyn.engine.executors.pool import each, streams
from feddyn.errors import FeddynError, InputError


def count(job: tuple[str, int]) -> Generator[tuple[int, int], None, None]:
    """Numbers, with the process that counts."""
    name, end = job
    if name == "refuse":
        raise InputError("no")
    if name == "die":
        os._exit(1)
    yield from ((os.getpid(), number) for number in range(end))


def endless(path: Path) -> Generator[str, None, None]:
    """Something to be closed: then it says so in a file."""
    try:
        while True:
            yield "on"
            time.sleep(0.01)
    finally:
        path.write_text("closed")


def double(number: int) -> int:
    return 2 * number


def test_every_job_yields_in_order_and_in_processes_of_its_own() -> None:
    jobs = [("a", 3), ("b", 2), ("c", 4)]
    found: dict[tuple[str, int], list[int]] = {job: [] for job in jobs}
    places = set()
    for job, (place, number) in streams(count, jobs, 2):
        found[job].append(number)
        places.add(place)
    assert found == {job: list(range(job[1])) for job in jobs}
    assert len(places) <= 2
    assert os.getpid() not in places
    assert list(streams(count, jobs[:1], 2)) == [(jobs[0], (os.getpid(), number)) for number in range(3)]
    assert list(streams(count, [], 2)) == []
    assert sorted(each(double, [1, 2, 3], 2)) == [(1, 2), (2, 4), (3, 6)]


@pytest.mark.parametrize(("name", "sentence"), [("refuse", "no"), ("die", "a process was killed from outside")])
def test_what_goes_wrong_there_is_raised_here(name: str, sentence: str) -> None:
    with pytest.raises(FeddynError, match=sentence):
        list(streams(count, [(name, 0), ("a", 1)], 2))


def test_whoever_stops_listening_closes_what_is_under_way(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    running, heard = streams(endless, paths, 2), set()
    for path, _ in running:
        heard.add(path)
        if len(heard) == 2:
            break
    running.close()
    assert [path.read_text() for path in paths] == ["closed", "closed"]
