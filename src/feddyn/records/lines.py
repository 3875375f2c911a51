"""Files of JSON lines, of which a record has two. They may come from elsewhere, or be damaged: a line that is not as it
should be is refused when it is read, so that nobody stumbles over it later."""

import json
import reprlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from feddyn.errors import InputError

T = TypeVar("T")
COUNTS = ("round", "transmitted", "bytes_up", "bytes_down", "gradients")
MOST = 2**63
"""Counts are below it."""
LARGEST = 1e100
"""A figure beyond it is not one that a run goes on with, and cannot be drawn."""


def read_lines(path: Path, take: Callable[[dict[str, Any]], T], anew: str = "remove it") -> list[T]:
    """What `take` makes of the lines of a file that may not be there, without one that a crash cut off; `anew` is how
    to do without a damaged one."""
    found = []
    for number, text in enumerate(_whole(path).splitlines(), 1):
        try:
            found.append(take(table(strictly(text), "the line")))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path} is damaged (line {number}: {error}): restore it, or {anew} to start anew"
            ) from None
    return found


def append_lines(path: Path, new: Iterable[Mapping[str, Any]]) -> None:
    """Add lines to a file, in the place of one that a crash cut off."""
    whole = len(_whole(path))
    with path.open("ab") as file:
        file.truncate(whole)
        file.write("".join(json.dumps(line) + "\n" for line in new).encode())


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """The rounds of a record, one after the other, all evaluated in the same way. Checkpoints count on them."""
    found = read_lines(path, _round, f"move {path.parent} away")
    shapes = []
    for number, line in enumerate(found, 1):
        if line["round"] != number:
            raise InputError(f"{path} is damaged: line {number} is of round {line['round']}, not {number}")
        if "models" in line:
            shapes.append({model: sorted(figures) for model, figures in line["models"].items()})
            if shapes[-1] != shapes[0]:
                raise InputError(f"{path} is damaged: line {number} has other figures than the lines before it")
    return found


def _round(line: dict[str, Any]) -> dict[str, Any]:
    for name in COUNTS:
        count(line, name)
    if not isinstance(active := line.get("active", []), list):
        raise ValueError(f"active is {reprlib.repr(active)}, not a list of devices")
    for device in active:
        count({"active": device}, "active")
    for kind in ("norms", "devices", "broadcast"):
        for name in table(line.get(kind, {}), kind):
            figure(line[kind], name)
    models = table(line.get("models", {}), "models")
    for model, figures in models.items():
        for name in table(figures, f"the model {model!r}"):
            figure(figures, name)
        if "loss" not in figures or not 0 <= figures.get("accuracy", 0) <= 1:
            raise ValueError(f"the model {model!r} has no loss, or an accuracy that is not between 0 and 1")
    if "models" in line and not models:
        raise ValueError("models is empty")
    return line


def strictly(text: str | bytes) -> Any:
    """JSON as its standard has it, without NaN and infinity."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def table(value: object, name: str) -> dict[str, Any]:
    """The value, if it is a table."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {reprlib.repr(value)}, not a table")
    return value


def text(line: Mapping[str, Any], name: str) -> str:
    """An entry that is a text."""
    if not isinstance(value := _entry(line, name), str):
        raise ValueError(f"{name} is {reprlib.repr(value)}, not a text")
    return value


def count(line: Mapping[str, Any], name: str) -> int:
    """An entry that is a whole number of at least 0."""
    value = _entry(line, name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MOST:
        raise ValueError(f"{name} is {reprlib.repr(value)}, not a count")
    return value


def figure(line: Mapping[str, Any], name: str, largest: float = LARGEST) -> float:
    """An entry that is a number of at most `largest` in magnitude."""
    value = _entry(line, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not -largest <= value <= largest:
        raise ValueError(f"{name} is {reprlib.repr(value)}, not a number up to {largest:g}")
    return value


def _entry(line: Mapping[str, Any], name: str) -> object:
    if name not in line:
        raise ValueError(f"{name} is missing")
    return line[name]


def _whole(path: Path) -> bytes:
    try:
        text = path.read_bytes()
    except OSError:
        return b""
    return text[: text.rfind(b"\n") + 1]
