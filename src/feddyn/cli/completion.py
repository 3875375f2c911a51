"""`feddyn completion`, and what is offered when Tab is pressed.

A shell asks anew at every Tab, so nothing here imports PyTorch: the names of the paper's tables come from a file.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

import feddyn
from feddyn.records.comparison import FILE as COMPARISON

ROUNDS = "rounds.jsonl"
"""Every record has it, and nothing else."""
VARIABLE = "_FEDDYN_COMPLETE"
"""By which the script asks for an answer; click makes the name of the program's."""
INSTALL = {
    "bash": "# To install it: feddyn completion bash > ~/.feddyn-completion.bash, and in ~/.bashrc: "
    ". ~/.feddyn-completion.bash",
    "zsh": "# To install it: feddyn completion zsh > ~/.feddyn-completion.zsh, and in ~/.zshrc, after compinit: "
    ". ~/.feddyn-completion.zsh",
    "fish": "# To install it: feddyn completion fish > ~/.config/fish/completions/feddyn.fish",
}


@click.command(short_help="Print the script that completes feddyn's words in a shell.")
@click.argument("shell", type=click.Choice(list(INSTALL)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes feddyn's words in a SHELL; its first line says how to install it."""
    kind = get_completion_class(shell)
    assert kind is not None  # click has all of INSTALL
    click.echo(f"{INSTALL[shell]}\n{kind(context.find_root().command, {}, 'feddyn', VARIABLE).source()}", nl=False)


def single_records(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Records of single runs: those of a comparison lie in its folder."""
    return _or("dir", begun, (path for record in _records(begun) for path in _runs(record)))


def records(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Records of runs and of comparisons."""
    return _or("dir", begun, _records(begun))


def settings_files(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Settings files, in the folder that is being typed and one below; not those that are parts of records."""
    files = (file for pattern in ("*.toml", "*/*.toml") for file in _glob(_folder(begun), pattern))
    return _or("file", begun, (file for file in files if not (file.parent / ROUNDS).exists()))


def data_sets(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The data sets that can be downloaded."""
    from feddyn.data.datasets.published import ABOUT

    return _starting(begun, ABOUT)


def paper_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Tables and figures of the paper, or, for an option, the rows or methods of the one that was named."""
    known = tomllib.loads((Path(feddyn.__file__).parent / "paper" / "names.toml").read_text(encoding="utf-8"))
    if parameter.name == "name":
        return _starting(begun, known)
    named = {context.params.get("name"), *context.args}  # click leaves it there, in front of an option without a value
    chosen = [parts for name, parts in known.items() if name in named] or known.values()
    return _starting(begun, dict.fromkeys(word for parts in chosen for word in parts[parameter.name]))


def _starting(begun: str, words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(begun)]


def _or(kind: str, begun: str, paths: Iterable[Path]) -> list[CompletionItem]:
    """The paths that go on from what was typed; where there are none, whatever the shell finds of that kind."""
    return _starting(begun, sorted({str(path) for path in paths})) or [CompletionItem(begun, type=kind)]


def _folder(begun: str) -> Path:
    """The folder in which the last name of a path is being typed."""
    return Path(begun) if begun.endswith("/") else Path(begun).parent


def _glob(folder: Path, pattern: str) -> list[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def _records(begun: str) -> list[Path]:
    """Records in the folder that is being typed, and before anything is typed those in runs/, too."""
    folders = [_folder(begun)] + ([Path("runs")] if "runs/".startswith(begun) else [])
    return [file.parent for folder in folders for name in (ROUNDS, COMPARISON) for file in _glob(folder, f"*/{name}")]


def _runs(record: Path) -> list[Path]:
    return [file.parent for file in _glob(record, f"*/{ROUNDS}")] if (record / COMPARISON).exists() else [record]
