"""What docs/own.md shows is what its commands print."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from feddyn import cli

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "own.md").read_text()


def test_the_commands_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its figures are computed in float64 and rounded, so that no processor changes them."""
    monkeypatch.chdir(tmp_path)
    (shown,) = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    commands = re.split(r"^\$ ", shown, flags=re.MULTILINE)[1:]
    assert len(commands) == 2
    for command in commands:
        words, _, printed = command.partition("\n")
        monkeypatch.setattr(sys, "argv", shlex.split(words))
        with pytest.raises(SystemExit) as done:
            cli.main()
        assert done.value.code == 0
        found = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
        assert printed.removeprefix("...\n").rstrip() in found
