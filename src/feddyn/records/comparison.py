"""The runs of a comparison, written down before the first one starts, so that all of them can be resumed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddyn.errors import InputError
from feddyn.records.lines import strictly, table, text

if TYPE_CHECKING:
    from feddyn.settings.building import Named

FILE = "comparison.json"


def write_comparison(directory: Path, named: "Sequence[Named]") -> None:
    """The label and the whole setting of every run; a single run's is in its own record."""
    from feddyn.records.files import write_whole

    if len(named) > 1:
        runs = [{"label": label, "setting": plan.setting()} for label, plan in named]
        write_whole(directory / FILE, [json.dumps({"runs": runs}, indent=1).encode()])


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
