"""What the tuning of a leaderboard's setting came to, in a file beside its runs: all that its page needs of the
candidates, whose records may be left away."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feddyn.errors import InputError
from feddyn.records.files import write_whole
from feddyn.records.lines import strictly, table

FILE = "tuned.json"


def write(home: Path, methods: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep the values that methods were tuned to, by their labels."""
    write_whole(home / FILE, [json.dumps(methods, indent=1).encode() + b"\n"])


def read(home: Path) -> dict[str, dict[str, Any]]:
    """The same again; empty where nothing was kept."""
    file = home / FILE
    try:
        return {label: table(values, label) for label, values in table(strictly(file.read_bytes()), "it").items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged: {error}; remove it, and tune again") from None
