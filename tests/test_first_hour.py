"""docs/first-hour.md, command by command: what it shows is what is printed, but for times and the last digits."""

import contextlib
import io
import math
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_run import call

PAGE = (Path(__file__).parents[1] / "docs" / "first-hour.md").read_text()
BLOCKS = re.compile(r"```console\n(.*?)```|```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
TIME = re.compile(r"\d+ (?:s|min)\b(?: to \d+ (?:s|min)\b)?")
DRAWN = re.compile(r"[▁▂▃▄▅▆▇█]+|[-+=]{3,}")


def steps() -> Iterator[tuple[str, str, str]]:
    """Every command or piece of Python, with what is shown below it."""
    for console, code, output in BLOCKS.findall(PAGE):
        if code:
            yield "python", code, output
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE):
            yield "shell", command, shown


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


def test_the_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="there is no pyarrow: pip install 'feddyn[table]'")
    monkeypatch.chdir(tmp_path)
    for kind, words, shown in steps():
        printed = io.StringIO()
        if kind == "python":
            with contextlib.redirect_stdout(printed):
                exec(words, {})
        elif words.startswith("cd "):
            monkeypatch.chdir(words.removeprefix("cd "))
        elif "feddyn " not in words:
            printed.write(subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True).stdout)
        else:
            for arguments in expanded(words):
                code = call(*arguments, monkeypatch=monkeypatch)
                out, err = capsys.readouterr()
                assert code == 0, err
                printed.write(out)
        compared(shown, printed.getvalue())
    assert (tmp_path / "clinic" / "alphas.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "clinic").glob("runs/*/setting.toml"))) == 8
