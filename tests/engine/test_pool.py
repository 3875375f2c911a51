"""Work side by side in processes: what it yields, how it fails, and how it ends."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from feddyn.engine.pool import each, streams
from feddyn.errors import FeddynError, InputError


class OddError(Exception):
    """An error as some libraries have them, which cannot be made again from its text."""

    def __init__(self, code: int, place: str):
        super().__init__(f"error {code} at {place}")


def count(job: tuple[str, int]) -> Generator[tuple[int, int], None, None]:
    """Numbers, with the process that counts."""
    name, end = job
    if name == "refuse":
        raise InputError("no")
    if name == "odd":
        raise OddError(7, "home")
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


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("refuse", "no"), ("odd", "OddError: error 7 at home"), ("die", "a process was killed from outside")],
)
def test_what_goes_wrong_there_is_raised_here(name: str, sentence: str) -> None:
    with pytest.raises(FeddynError, match=sentence):
        list(streams(count, [(name, 0), ("a", 1)], 2))


def test_a_process_that_is_killed_is_replaced_where_its_job_may_be_lost() -> None:
    jobs = [("die", 0), ("a", 2), ("die", 1), ("b", 1)]
    found = [(job, item if item == "lost" else item[1]) for job, item in streams(count, jobs, 2, lambda job: "lost")]
    assert sorted(found, key=str) == [
        (("a", 2), 0),
        (("a", 2), 1),
        (("b", 1), 0),
        (("die", 0), "lost"),
        (("die", 1), "lost"),
    ]


def test_processes_whose_parent_is_killed_are_interrupted(tmp_path: Path) -> None:
    """In the midst of what they do: nobody listens to them, and they have nothing to say for a long time."""
    code = (
        "from pathlib import Path\nfrom tests.engine.test_pool import silent\n"
        "from feddyn.engine.pool import streams\n"
        f"home = Path({str(tmp_path)!r})\nlist(streams(silent, [home / 'one', home / 'two'], 2))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    names = {"one", "two"}
    try:
        _until(lambda: {path.name for path in tmp_path.iterdir()} == names)
    finally:
        parent.kill()
        parent.wait()
    _until(lambda: all((tmp_path / name).read_text() == "closed" for name in names))


def silent(path: Path) -> Generator[str, None, None]:
    path.write_text("begun")
    try:
        time.sleep(600)
        yield "late"
    finally:
        path.write_text("closed")


def _until(true: Callable[[], bool]) -> None:
    for _ in range(1200):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it never came")


def test_whoever_stops_listening_closes_what_is_under_way(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    running, heard = streams(endless, paths, 2), set()
    for path, _ in running:
        heard.add(path)
        if len(heard) == 2:
            break
    running.close()
    assert [path.read_text() for path in paths] == ["closed", "closed"]
