"""What the tuning of a leaderboard's setting came to, in a file beside its runs: all that its page needs of the
candidates, whose records may be left away."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from feddyn.errors import InputError
from feddyn.records.files import write_whole
from feddyn.records.lines import strictly, table, text

FILE = "tuned.json"
MODELS = ("server", "active", "all")


class Tuned(NamedTuple):
    """The values of a method's best candidate, and the model that it is judged by."""

    values: dict[str, Any]
    model: str


def write(home: Path, methods: Mapping[str, Tuned]) -> None:
    """Keep what methods were tuned to, by their labels."""
    listed = {label: tuned._asdict() for label, tuned in methods.items()}
    write_whole(home / FILE, [json.dumps(listed, indent=1).encode() + b"\n"])


def read(home: Path) -> dict[str, Tuned]:
    """The same again; empty where nothing was kept."""
    file = home / FILE
    try:
        return {label: _tuned(entry) for label, entry in table(strictly(file.read_bytes()), "it").items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}; remove it, and tune again") from None


def _tuned(entry: object) -> Tuned:
    found = table(entry, "a method")
    if (model := text(found, "model")) not in MODELS:
        raise ValueError(f"model is {model!r}, not one of {', '.join(MODELS)}")
    return Tuned(table(found.get("values"), "values"), model)
