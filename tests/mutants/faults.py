"""The list of faults: small changes of the source, each of which some test must notice."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "feddyn"


@dataclass(frozen=True)
class Fault:
    """In `file`, `find` becomes `replace`, and one of `tests` must fail; `explained` says why none can."""

    name: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]
    explained: str = ""

    @property
    def room(self) -> str:
        """The part of the source that the fault is in."""
        return self.file.partition("/")[0].removesuffix(".py")

    def applied(self, text: str) -> str | None:
        """The text with the fault; None where it has no place, or several."""
        return text.replace(self.find, self.replace) if text.count(self.find) == 1 else None


def faults() -> list[Fault]:
    """All faults, file after file."""
    files = sorted(Path(__file__).parent.glob("*.toml"))
    tables = (table for file in files for table in tomllib.loads(file.read_text())["fault"])
    return [Fault(**{**table, "tests": tuple(table["tests"])}) for table in tables]


def chosen(patterns: Sequence[str]) -> list[Fault]:
    """The faults whose names or files match one of the patterns, as in a shell; without patterns all."""

    def matches(fault: Fault) -> bool:
        return any(fnmatch(text, pattern) for text in (fault.name, fault.file) for pattern in patterns)

    return [fault for fault in faults() if not patterns or matches(fault)]
