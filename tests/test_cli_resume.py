"""`feddyn resume`: interrupted runs and comparisons, from the command line."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .test_cli import COMPARISON, SINGLE

FILES = ("setting.toml", "rounds.jsonl", "models.safetensors", "summary.json")
FEDDYN = [sys.executable, "-m", "feddyn"]
INTERRUPTED = """
import os, sys
from pathlib import Path

import feddyn.cli
from feddyn.records.record import Record

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
    assert (again.returncode, again.stdout.strip()) == (0, "part is complete: there is nothing to do")


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
        ("nowhere", "feddyn: there is no settings file nowhere/setting.toml"),
        ("empty", "feddyn: there is no settings file empty/setting.toml"),
        ("damaged", "feddyn: damaged/comparison.json is damaged"),
    ):
        done = feddyn("resume", words, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith(sentence)
        assert len(done.stderr.splitlines()) == 1
