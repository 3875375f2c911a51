"""`feddyn resume`: interrupted runs and comparisons, from the command line."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.test_run import COMPARISON, SINGLE

FILES = ("setting.toml", "rounds.jsonl", "models.safetensors", "summary.json")
FEDDYN = [sys.executable, "-m", "feddyn"]
INTERRUPTED = """
import os, sys
from pathlib import Path

import feddyn.cli
from feddyn.records.writer import Record

write, (_, directory, number, *sys.argv[1:]) = Record.line, sys.argv

def line(record, line):
    write(record, line)
    if record.directory == Path(directory) and line["round"] == 3:
        os.kill(os.getpid(), int(number))

Record.line = line
feddyn.cli.main()
"""
"""`feddyn`, to which a signal is sent when the third round of a run is recorded: not at a time, but at a place."""


def feddyn(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FEDDYN, *words], cwd=cwd, capture_output=True, text=True)


def interrupt(*words: str, cwd: Path, directory: str, number: int) -> tuple[int, str]:
    """What becomes of a command whose run in a directory is interrupted."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, directory, str(number), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        # where the tests run in the background, SIGINT would be ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    return done.returncode, done.stderr


def storm(*words: str, cwd: Path, watched: str, signals: Sequence[tuple[int, float]]) -> tuple[int, str]:
    """Start a run and send it signals, each with a pause after it, as soon as a file has three lines."""
    process = subprocess.Popen(
        [*FEDDYN, *words],
        cwd=cwd,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # ignored where the tests run in the background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    file = cwd / watched
    while process.poll() is None:
        if file.exists() and file.read_bytes().count(b"\n") >= 3:
            for number, pause in signals:
                process.send_signal(number)
                time.sleep(pause)
            break
        time.sleep(0.002)
    return process.wait(), process.communicate()[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_says_how_to_go_on_and_does(number: int, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(SINGLE.replace("rounds = 6", "rounds = 40"))
    code, words = interrupt("run", "my.toml", "--out", "part", cwd=tmp_path, directory="part", number=number)
    assert (code, words.strip()) == (130, "feddyn: interrupted; to go on: feddyn resume part")
    assert json.loads((tmp_path / "part" / "summary.json").read_text())["status"] == "interrupted"
    assert feddyn("resume", "part", "--workers", "1", cwd=tmp_path).returncode == 0
    assert feddyn("run", "my.toml", "--out", "whole", cwd=tmp_path).returncode == 0
    for name in FILES:
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    again = feddyn("resume", "part", cwd=tmp_path)
    assert (again.returncode, again.stdout.strip()) == (
        0,
        "part is complete: there is nothing to do (more rounds: --set rounds=N)",
    )


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that takes its time, and has done so."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "my.toml").write_text(SINGLE.replace("rounds = 6", "rounds = 400"))
    assert feddyn("run", "my.toml", "--out", "whole", "--workers", "1", cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize("seed", range(3))
def test_thirty_signals_end_a_run_as_one_does(long: Path, seed: int) -> None:
    """At random instants, from its first rounds on: while it trains and saves itself, which it does after every round,
    and while it ends. It says how to go on, and does, to the same bits."""
    dice, out = random.Random(seed), f"part-{seed}"
    words = ("run", "my.toml", "--out", out, "--checkpoint-rounds", "1", "--workers", str(1 + seed % 2))
    code, said = storm(
        *words,
        cwd=long,
        watched=f"{out}/rounds.jsonl",
        signals=[(dice.choice([signal.SIGINT, signal.SIGTERM]), dice.random() * 0.03) for _ in range(30)],
    )
    assert (code, said.strip()) == (130, f"feddyn: interrupted; to go on: feddyn resume {out}")
    assert json.loads((long / out / "summary.json").read_text())["status"] == "interrupted"
    assert feddyn("resume", out, "--workers", "1", cwd=long).returncode == 0
    for name in FILES:
        assert (long / out / name).read_bytes() == (long / "whole" / name).read_bytes()


def test_signals_to_a_run_that_is_over_show_no_traceback(tmp_path: Path) -> None:
    """Those that come while tables and plots are made interrupt that, and those after it nothing."""
    (tmp_path / "my.toml").write_text(SINGLE)
    signals = [(signal.SIGINT, 0.02)] * 100
    code, said = storm("run", "my.toml", "--out", "out", cwd=tmp_path, watched="out/summary.json", signals=signals)
    assert code in (0, 130)
    assert said.strip().startswith("feddyn: interrupted; " if code else "")
    assert len(said.strip().splitlines()) == bool(code)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["status"] == "finished"


def test_a_comparison_goes_on_with_the_method_it_was_at_and_those_after_it(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(COMPARISON.replace("rounds = 6", "rounds = 20"))
    place = "part/scaffold"
    code, _ = interrupt("run", "my.toml", "--out", "part", cwd=tmp_path, directory=place, number=signal.SIGINT)
    assert code == 130
    assert not (tmp_path / "part" / "fedsplit-all").exists()
    assert feddyn("resume", "part", cwd=tmp_path).returncode == 0
    assert feddyn("run", "my.toml", "--out", "whole", cwd=tmp_path).returncode == 0
    assert (tmp_path / "part" / "table.md").read_text() == (tmp_path / "whole" / "table.md").read_text()
    methods = [path.name for path in (tmp_path / "whole").iterdir() if path.is_dir()]
    assert len(methods) == 7
    for method in methods:
        for name in FILES:
            ours, theirs = (tmp_path / run / method / name for run in ("part", "whole"))
            assert ours.read_bytes() == theirs.read_bytes()


def test_what_cannot_be_resumed_gets_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "comparison.json").write_text("{")
    for words, sentence in (
        ("nowhere", "feddyn: there is no folder nowhere: name that of a run's record"),
        ("empty", "feddyn: there is no record of a single run in empty"),
        ("damaged", "feddyn: damaged/comparison.json is damaged"),
    ):
        done = feddyn("resume", words, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith(sentence)
        assert len(done.stderr.splitlines()) == 1
