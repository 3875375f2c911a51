"""Commands of all texts, also of those that no test carries out: the options, arguments and modules in them exist."""

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from feddyn.cli import cli
from feddyn.errors import FeddynError
from tests.pages import ROOT, expanded, steps
from tests.test_docs import OLD, TEXTS

FEDDYN = re.compile(r"(?:^|&& |; )((?:for .* do )?feddyn .*)")
RANKS = re.compile(r"\btorchrun .*? -m feddyn (.*)")
MODULE = re.compile(r"\bpython3? -m ([\w.]+)")
SCRIPT = re.compile(r"\bpython3? ([\w/]+\.py)\b")
NUMBER = re.compile(r"\b(?:N|EPOCHS)\b")
"""What a reader is to fill in."""
INLINE = re.compile(r"`(feddyn [a-z][^`\n]*)`")


def wrong(words: list[str]) -> str | None:
    """What click says against the words after `feddyn`, without carrying them out."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    try:
        command.make_context("feddyn", list(words), resilient_parsing=isinstance(command, click.Group))
    except (click.ClickException, FeddynError) as error:
        return str(error)
    except click.exceptions.Exit:  # --version, --help
        return None
    return None


def faults(text: str) -> list[str]:
    """Of the commands in a text's blocks, and of those in a line that are whole."""
    found = []
    for kind, command, _ in steps(text):
        if kind != "shell":
            continue
        calls = [words for part in FEDDYN.findall(command) for words in expanded(part)]
        calls += [shlex.split(part, comments=True) for part in RANKS.findall(command)]
        found += [f"{command}: {fault}" for words in calls if (fault := wrong(words))]
        found += [f"{command}: no module" for name in MODULE.findall(command) if not importlib.util.find_spec(name)]
        found += [f"{command}: no file" for name in SCRIPT.findall(command) if not (ROOT / name).exists()]
    for command in INLINE.findall(text):
        filled = NUMBER.sub("1", command).replace("[", "").replace("]", "")
        fault = wrong(shlex.split(filled)[1:]) if "..." not in command else None
        if fault and not fault.startswith("Missing parameter"):  # there, a name stands for the command
            found.append(f"{command}: {fault}")
    return found


@pytest.mark.parametrize("text", TEXTS, ids=[str(text.relative_to(ROOT)) for text in TEXTS])
def test_commands_of_a_text_can_be_typed(text: Path) -> None:
    if text.name != OLD:
        assert not faults(text.read_text())


def test_what_cannot_be_typed_is_noticed() -> None:
    for command, sentence in (
        ("feddyn rum my.toml", "no command rum"),
        ("feddyn run my.toml --rounds 3", "No such option"),
        ("cd a && feddyn deploy statuses fed", "no command statuses"),
        ("feddyn show", "Missing parameter"),
        ("for a in 1 2; do feddyn run a b$a; done", "unexpected extra argument"),
        ("torchrun --nproc-per-node 2 -m feddyn run my.toml --wokers 2", "No such option"),
        ("python -m benchmark", "no module"),
        ("python examples/gone.py", "no file"),
    ):
        (fault, *_) = faults(f"```console\n$ {command}  # words\n```\n")
        assert sentence in fault
    assert not faults("```console\n$ feddyn run my.toml --set rounds=3 --out a  # words\n$ python -m benchmarks\n```\n")
    assert not faults("Use `feddyn resume` and `feddyn resume DIR`.")
    assert faults("Use `feddyn resume DIR --forever`.")


def options(command: click.Command, name: str) -> list[tuple[str, list[str]]]:
    """Every command below this one with its options; of an option that has several names, all."""
    if isinstance(command, click.Group):
        return [one for word, part in command.commands.items() for one in options(part, f"{name} {word}")]
    return [(name, [])] + [(name, param.opts) for param in command.params if isinstance(param, click.Option)]


@pytest.mark.parametrize(("name", "words"), options(cli, "feddyn"))
def test_every_command_and_option_stands_on_some_page(name: str, words: list[str]) -> None:
    pages = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
    assert name in pages
    assert not words or any(word in pages for word in words if word.startswith("--"))
