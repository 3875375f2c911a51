"""What the tuning of a leaderboard's setting came to, in a file beside its runs: all that its page needs of the
candidates, whose records may be left away."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feddyn.errors import InputError
from feddyn.records.files import write_whole
from feddyn.records.lines import strictly, table, text

FILE = "tuned.json"


def write(home: Path, model: str, methods: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep the values that methods were tuned to by a model's figures, by their labels."""
    write_whole(home / FILE, [json.dumps({"model": model, "methods": methods}, indent=1).encode() + b"\n"])


def read(home: Path, model: str) -> dict[str, dict[str, Any]]:
    """The same again; empty where nothing was kept. What was tuned by another model is refused."""
    file = home / FILE
    try:
        found = table(strictly(file.read_bytes()), "it")
        methods = table(found.get("methods"), "methods")
        values = {label: table(values, label) for label, values in methods.items()}
        by = text(found, "model")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}; remove it, and tune again") from None
    if by != model:
        raise InputError(
            f"{file} has what was tuned by the model {by!r}, and not by {model!r}: remove it, and tune again"
        )
    return values
