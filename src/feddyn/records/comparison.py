"""The runs of a comparison, written down before the first one starts, so that all of them can be resumed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from feddyn.errors import InputError
from feddyn.records.files import write_code, write_whole
from feddyn.records.layout import Setting
from feddyn.records.lines import strictly, table, text

FILE = "comparison.json"


def write_comparison(directory: Path, runs: Sequence[tuple[str, Setting]], code: Mapping[str, bytes]) -> None:
    """The label and the whole setting of every run, and the code they name; a single run's is in its own record."""
    if len(runs) > 1:
        write_code(directory, code)
        listed = [{"label": label, "setting": setting} for label, setting in runs]
        write_whole(directory / FILE, [json.dumps({"runs": listed}, indent=1).encode()])


def read_comparison(directory: Path) -> list[tuple[str, dict[str, Any]]]:
    """The same again; empty where there is no comparison."""
    file = directory / FILE
    if not file.exists():
        return []
    try:
        runs = table(strictly(file.read_bytes()), "it").get("runs")
        if not isinstance(runs, list) or not runs:
            raise ValueError("it has no runs")
        return [(text(table(run, "a run"), "label"), table(run.get("setting"), "a setting")) for run in runs]
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} is damaged ({error}): go on without it, method by method, below it") from None
