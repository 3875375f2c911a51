"""Puts one fault at a time into a copy of the source, and looks whether a test notices.

`python -m tests.mutants [PATTERN...]` tries the faults whose names or files match; `--write` puts the table into
docs/mutants.md. A fault that no test notices, and that is not explained, makes it fail.
"""

import argparse
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.faults import ROOT, SOURCE, Fault, chosen

PAGE = ROOT / "docs" / "mutants.md"
MARK = "<!-- what follows is written by: python -m tests.mutants --write -->\n"
PATIENCE = 900
"""Seconds after which tests that still run count as having noticed: a fault may make a loop endless."""
HEAVY = ("hypothesis.strategies", "pytest", "safetensors.torch", "torch.func")
"""What takes seconds to import and is the same for all faults: processes are forked with it."""
WORDS = {0: "survived", 1: "killed", -signal.SIGALRM: "killed"}


def run_tests(folder: Path, fault: Fault | None, tests: Sequence[str]) -> int:
    """pytest's exit code on a copy of the source with a fault (None: without); in a process of its own."""
    copy = folder / "feddyn"
    shutil.copytree(SOURCE, copy)
    if fault is not None:
        (copy / fault.file).write_text(fault.applied((copy / fault.file).read_text()) or "")
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    if Path(importlib.import_module("feddyn").__path__[0]) != copy:
        print("the source that is tested is not the copy")
        return 3
    pytest = importlib.import_module("pytest")
    options = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'pytest'}"]
    return int(pytest.main([*options, "-W", "ignore:Module already imported", *tests]))


def forked(folder: Path, fault: Fault | None, tests: Sequence[str]) -> int:
    """The number of a process that runs the tests; its exit code is pytest's, and `said` what it says."""
    folder.mkdir()
    if (child := os.fork()) == 0:
        code = 3
        try:
            said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT)
            os.dup2(said, 1)
            os.dup2(said, 2)
            signal.alarm(PATIENCE if fault else 0)
            code = run_tests(folder, fault, tests)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return child


def outcomes(faults: Sequence[Fault | None]) -> Iterator[tuple[Fault | None, int, str]]:
    """Each fault with the exit code and the last words of its tests, one process a core; None: all tests, no fault."""
    everything = sorted({test for fault in faults if fault for test in fault.tests})
    todo, running = deque(enumerate(faults)), dict[int, tuple[Fault | None, Path]]()
    with tempfile.TemporaryDirectory(prefix="feddyn-mutants-") as place:
        try:
            while todo or running:
                while todo and len(running) < len(os.sched_getaffinity(0)):
                    number, fault = todo.popleft()
                    folder = Path(place, str(number))
                    running[forked(folder, fault, fault.tests if fault else everything)] = (fault, folder)
                child, status = os.wait()
                fault, folder = running.pop(child)
                lines = [line for line in (folder / "said").read_text(errors="replace").splitlines() if line.strip()]
                failed = [line for line in lines if line.startswith("FAILED")]  # whatever went wrong after that
                yield fault, 1 if failed else os.waitstatus_to_exitcode(status), (failed or lines or [""])[-1][:200]
                shutil.rmtree(folder)
        finally:
            for child in running:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def verdict(fault: Fault, code: int) -> str:
    """What became of a fault, in a word."""
    word = WORDS.get(code, "does not run")
    return {"survived": "explained", "killed": "killed, though explained"}.get(word, word) if fault.explained else word


def table(results: Sequence[tuple[Fault, str]]) -> str:
    """The counts by room, and the faults that no test can notice."""
    lines = ["| module | faults | killed | explained |", "| --- | ---: | ---: | ---: |"]
    for room in [*sorted({fault.room for fault, _ in results}), "all"]:
        words = Counter(word for fault, word in results if room in (fault.room, "all"))
        lines.append(f"| {room} | {words.total()} | {words['killed']} | {words['explained']} |")
    explained = [f"- `{fault.name}`: {fault.explained}" for fault, word in results if word == "explained"]
    return "\n".join([*lines, "", "Faults that no test can notice, and why:", "", *explained]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="of names or files (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table to docs/mutants.md")
    options = parser.parse_args()
    faults = chosen(options.patterns)
    if not faults or (options.write and options.patterns):
        parser.error("no fault has such a name" if not faults else "only a table of all faults is written")
    if lost := [fault.name for fault in faults if fault.applied((SOURCE / fault.file).read_text()) is None]:
        print(f"does not apply, as its text is not in its file exactly once: {', '.join(lost)}")
        return 1
    os.environ["OMP_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    for name in HEAVY:
        importlib.import_module(name)
    clock, results = time.monotonic(), list[tuple[Fault, str]]()
    for fault, code, words in outcomes([None, *faults]):
        word = verdict(fault, code) if fault else "sound" if code == 0 else "not sound"
        print(f"{word:9} {fault.name if fault else 'without a fault'}: {words}", flush=True)
        if fault is not None:
            results.append((fault, word))
        elif code != 0:
            return 1
    counts = Counter(word for _, word in results)
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    print(f"{len(results)} faults in {time.monotonic() - clock:.0f} s: {said}")
    if set(counts) - {"killed", "explained"}:
        return 1
    if options.write:
        results.sort(key=lambda result: faults.index(result[0]))
        PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + "\n" + table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
