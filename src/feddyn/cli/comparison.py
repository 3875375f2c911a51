"""The runs of a comparison, written down before the first one starts, so that all of them can be resumed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddyn.errors import InputError

if TYPE_CHECKING:
    from feddyn.settings.building import Named

FILE = "comparison.json"


def write_comparison(directory: Path, named: "Sequence[Named]") -> None:
    """The label and the whole setting of every run, and the code they name; a single run's is in its own record."""
    from feddyn.records.files import write_code, write_whole

    if len(named) > 1:
        runs = [{"label": label, "setting": plan.setting()} for label, plan in named]
        for _, plan in named:
            write_code(directory, plan.code)
        write_whole(directory / FILE, [json.dumps({"runs": runs}, indent=1).encode()])


def read_comparison(directory: Path) -> list[tuple[str, dict[str, Any]]]:
    """The same again; empty where there is no comparison."""
    file = directory / FILE
    if not file.exists():
        return []
    try:
        runs = json.loads(file.read_bytes())["runs"]
        return [(run["label"], run["setting"]) for run in runs]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} is damaged ({error}): resume the methods one by one, in the directories below it"
        ) from None
