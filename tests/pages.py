"""Texts that are run: their commands, files and pieces of Python, one after the other, and what they show of them.

A block `console` has commands and what they print, a block `python` with a plain block below it a program and what it
prints, and a block of any kind that begins with `# NAME.py` or the like is that file.
"""

import contextlib
import io
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_run import call

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(console|python|toml)\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w-]+\.\w+)\n")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
TIME = re.compile(r"\d+ (?:s|min)\b(?: to \d+ (?:s|min)\b)?")
DRAWN = re.compile(r"[▁▂▃▄▅▆▇█]+|[-+=]{3,}")
OURS = re.compile(r"(?:for .* do )?feddyn ")
"""Commands that are carried out in this process, which has loaded PyTorch."""


def steps(text: str) -> Iterator[tuple[str, str, str]]:
    """Every command, program or file, with what is shown below it (of a file: its name)."""
    for kind, body, output in BLOCK.findall(text):
        if kind == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
                yield "shell", command, shown
        elif file := FILE.match(body):
            yield "file", body, file[1]
        elif kind == "python" and output:
            yield "python", body, output


def expanded(command: str) -> list[list[str]]:
    """The words of every call of feddyn in a command, as a shell makes them of loops and patterns."""
    script = f'feddyn() {{ printf "%q " "$@"; echo; }}; {command}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return [shlex.split(line) for line in done.stdout.splitlines()]


def lines(text: str) -> list[str]:
    """Without what is drawn, how wide it is, and times."""
    plain = (DRAWN.sub(" ", TIME.sub("TIME", line)) for line in text.splitlines())
    return [" ".join(line.replace("|", " ").split()) for line in plain if line.strip(" |+-\n")]


def alike(shown: str, printed: str) -> bool:
    """Whether two lines have the same words, and numbers that are close."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(math.isclose(float(one), float(other), rel_tol=0.05, abs_tol=0.02) for one, other in pairs)


def compared(shown: str, printed: str) -> None:
    """Every shown line is printed, in this order; `...` stands for lines that are not shown."""
    wanted, found = lines(shown), lines(printed)
    at, skipping = 0, False
    for line in wanted:
        if line == "...":
            skipping = True
            continue
        while skipping and at < len(found) and not alike(line, found[at]):
            at += 1
        assert at < len(found), f"{line!r} is not printed:\n{printed}"
        assert alike(line, found[at]), f"{line!r} is shown, but printed is:\n{printed}"
        at, skipping = at + 1, False
    assert skipping or at == len(found), f"more is printed than shown:\n{printed}"


def shell(command: str) -> str:
    """What a command prints that is not ours, or that starts processes of ours."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", command], env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def follow(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Do what a text says, in a folder, and compare what is printed with what it shows."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)  # programs may import files of the text
    for kind, words, shown in steps(text):
        if kind == "file":
            Path(shown).write_text(words)
        elif kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(words, {})
            compared(shown, printed.getvalue())
        elif words.startswith("cd "):
            monkeypatch.chdir(words.removeprefix("cd "))
        elif OURS.match(words):
            compared(shown, "".join(_called(arguments, monkeypatch, capsys) for arguments in expanded(words)))
        else:
            compared(shown, shell(words))


def _called(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    code = call(*arguments, monkeypatch=monkeypatch)
    out, err = capsys.readouterr()
    assert code == 0, err
    return out
