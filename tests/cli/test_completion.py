"""Tab: what a real bash is offered, without an import of PyTorch, and names that are those of the commands."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import feddyn
from feddyn.cli.completion import INSTALL
from feddyn.paper.catalogue import COLUMNS, experiments
from feddyn.paper.searches import searches
from feddyn.reports.heterogeneity import SPLITS
from tests.cli.test_run import COMPARISON, SINGLE, call

NAMES = Path(feddyn.__file__).parent / "paper" / "names.toml"
BIN = Path(sys.executable).parent


def paper_names() -> dict[str, dict[str, list[str]]]:
    """The tables and figures that `feddyn reproduce` knows, with their rows and methods."""
    made = {
        name: {"rows": experiment.rows, "methods": list(dict.fromkeys(job.method for job in experiment.jobs))}
        for name, experiment in experiments().items()
    }
    searched: dict[str, Any] = {
        name: {"rows": list(search.documents), "methods": []} for name, search in searches().items()
    }
    return {**made, **searched, "heterogeneity": {"rows": list(SPLITS), "methods": []}}


def test_the_names_in_the_file_are_those_of_the_paper() -> None:
    """`python -m tests.cli.test_completion` renews it."""
    assert tomllib.loads(NAMES.read_text()) == paper_names()
    assert paper_names()["participation"]["methods"] == list(COLUMNS)


def bash(words: str, folder: Path) -> list[str]:
    """What bash offers after these words, with the script sourced as a user would."""
    script = f"""
    eval "$(feddyn completion bash)"
    compopt() {{ echo "compopt $*"; }}  # bash has it only while it completes itself
    COMP_LINE={words!r}; COMP_POINT=${{#COMP_LINE}}
    read -r -a COMP_WORDS <<< "$COMP_LINE"
    [[ "$COMP_LINE" == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
    "$(complete -p feddyn | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" feddyn
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@needs_bash
def test_bash_is_offered_commands_records_settings_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "setting.toml").write_text(COMPARISON)
    (tmp_path / "one.toml").write_text(SINGLE)
    for file, out in (("mine/setting.toml", "runs/many"), ("one.toml", "runs/one"), ("one.toml", "here")):
        assert call("run", file, "--set", "rounds=1", "--out", out, monkeypatch=monkeypatch) == 0
    assert bash("feddyn re", tmp_path) == ["report", "reproduce", "resume"]
    assert bash("feddyn run --se", tmp_path) == ["--set", "--seed"]
    assert bash("feddyn run ", tmp_path) == ["mine/setting.toml", "one.toml"]
    assert bash("feddyn resume ", tmp_path) == ["here", "runs/many", "runs/one"]
    assert bash("feddyn resume runs/o", tmp_path) == ["runs/one"]
    assert bash("feddyn show runs/many/feddyn", tmp_path) == ["runs/many/feddyn", "runs/many/feddynonegd"]
    assert "runs/many" not in bash("feddyn doctor ", tmp_path)
    assert bash("feddyn show mi", tmp_path) == ["compopt", "-o", "dirnames"]
    assert bash("feddyn data fetch cifar", tmp_path) == ["cifar10", "cifar100"]
    assert bash("feddyn reproduce parti", tmp_path) == ["participation", "participation-1pct"]
    assert bash("feddyn reproduce participation --row mnist-iid", tmp_path) == ["mnist-iid-100", "mnist-iid-10"]
    assert bash("feddyn reproduce fedsplit --method feds", tmp_path) == ["fedsplit", "fedsplit-all"]
    assert bash("feddyn export x --model a", tmp_path) == ["active", "all"]


@pytest.mark.parametrize("words", ["feddyn ", "feddyn show ", "feddyn run ", "feddyn data fetch ", "feddyn reproduce "])
def test_no_answer_imports_pytorch(words: str, tmp_path: Path) -> None:
    code = (
        "import sys; from feddyn.cli import cli\n"
        "try: cli.main(prog_name='feddyn')\n"
        "finally: assert 'torch' not in sys.modules"
    )
    asked = {"_FEDDYN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, **asked}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("shell", INSTALL)
def test_every_script_says_how_to_install_it(shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    assert call("completion", shell, monkeypatch=monkeypatch) == 0
    first, _, script = capsys.readouterr().out.partition("\n")
    assert first == INSTALL[shell]
    assert f"feddyn completion {shell}" in first
    assert f"_FEDDYN_COMPLETE={shell}_complete" in script


if __name__ == "__main__":
    import tomli_w

    NAMES.write_text(
        "# For shells, which cannot wait for PyTorch; renewed by `python -m tests.cli.test_completion`.\n"
        + tomli_w.dumps(paper_names()),
        encoding="utf-8",
    )
