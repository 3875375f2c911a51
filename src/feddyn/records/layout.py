"""The record of a run: a directory that says everything about it, and that nothing ever overwrites.

setting.toml        complete: it alone repeats the run
code/               the source files outside of feddyn that the setting names, if it does
rounds.jsonl        a line a round; the same bits for equal settings
timings.jsonl       everything that differs between two equal runs
summary.json        how it ended
models.safetensors  the flat vectors after the last round, and that of the best round
state_dict.safetensors  the model that counts, by the names of its parameters
inputs.json         how samples became the model's input
devices.json        if it was asked for, the last figures of the server's model on each device's own samples
classes.json        how many samples of each class every device has, where there are classes
checkpoint/         while it goes on: all that is needed to go on after a crash
lock                held by the process that writes here
"""

import hashlib
import json
import re
import reprlib
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from safetensors import SafetensorError, deserialize

from feddyn.errors import FeddynError, InputError
from feddyn.records.lines import COUNTS, read_rounds, strictly, table, text

Setting: TypeAlias = dict[str, Any]
Line: TypeAlias = dict[str, Any]


class Status(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    FINISHED = "finished"
    REACHED = "target reached"
    GAVE_UP = "no longer improving"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"

    @property
    def complete(self) -> bool:
        """Whether all that was asked for is done."""
        return self in (Status.FINISHED, Status.REACHED, Status.GAVE_UP)

    @property
    def ended(self) -> bool:
        """Whether it cannot go on."""
        return self.complete or self is Status.DIVERGED


MODELS, STATE_DICT, INPUTS, DEVICES = "models.safetensors", "state_dict.safetensors", "inputs.json", "devices.json"
CLASSES = "classes.json"
HEADING = "# feddyn run "
"""Begins the first line of a setting.toml; then comes the setting's key."""


def key(setting: Mapping[str, Any]) -> str:
    """Sixteen digits that stand for a setting; every field of it counts. `stack` was once called `cohort`, and runs of
    that time keep their keys. A file with data counts by its hash, wherever it lies."""
    fields = {"cohort" if name == "stack" else name: value for name, value in _anywhere(setting).items()}
    return hashlib.sha256(json.dumps(fields, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


def _anywhere(setting: Mapping[str, Any]) -> Setting:
    """A setting without the places of files that it has hashes of."""
    if not isinstance(population := setting.get("population"), dict):
        return dict(setting)
    places = {"file": "sha256", "test": "test_sha256"}
    kept = {name: value for name, value in population.items() if places.get(name) not in population}
    return {**setting, "population": kept}


FREE = ("rounds", "target.value", "target.stop", "patience.rounds", "patience.gain")
"""Keys that say when a run ends, and nothing of the rounds before."""
BY_ROUND = ("participation", "links.away")
"""Keys that may have an entry for each round: those to come define nothing of the past."""


def past_key(setting: Mapping[str, Any]) -> str:
    """Digits that stand for all of a setting that defines a run's past: those of runs that differ only in when they end
    are equal. Of schedules, which may grow, it counts only that they are some."""
    found = {name: value for name, value in _dotted(setting).items() if name not in FREE}
    return key({name: _until(name, value, 0) for name, value in found.items()})


def difference(there: Mapping[str, Any], here: Mapping[str, Any], rounds: int) -> str:
    """The first thing in which two settings differ that defines a run's past of so many rounds; empty: none."""
    before, now = _dotted(there), _dotted(here)
    for name in dict.fromkeys((*before, *now)):
        values = [_until(name, part.get(name), rounds) for part in (before, now)]
        if name not in FREE and values[0] != values[1]:
            was, is_now = ("not there" if value is None else reprlib.repr(value) for value in values)
            return f"{name} was {was} when it was begun, and is {is_now} now"
    return ""


def _until(name: str, value: object, rounds: int) -> object:
    """A value as far as it defines so many rounds."""
    return value[:rounds] if name in BY_ROUND and isinstance(value, list) else value


def _dotted(setting: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a setting and of its tables as a file has them; `stack` may be called `cohort`."""
    found: dict[str, Any] = {}
    for name, value in json.loads(json.dumps(_anywhere(setting))).items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": part for key, part in value.items()}
        else:
            found["stack" if name == "cohort" else name] = value
    return found


def summary(
    setting: Mapping[str, Any],
    status: Status,
    message: str,
    history: Sequence[Line],
    initial: Mapping[str, Any] | None = None,
    reached: Mapping[str, Any] | None = None,
    best: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """How a run ended; `reached` is the first round in which the target was met, of which the counts are told."""
    return {
        "key": key(setting),
        "status": status,
        "message": message,
        "rounds": len(history),
        "initial": initial or {},
        "reached": None if reached is None else {name: reached[name] for name in COUNTS},
        "best": best,
        "last": history[-1] if history else None,
    }


def ended(directory: Path) -> Mapping[str, Any] | None:
    """The summary of a run that went to its end, or diverged; None for one that can go on."""
    try:
        summary = table(strictly((directory / "summary.json").read_bytes()), "it")
        text(summary, "message")
        return summary if Status(text(summary, "status")).ended else None
    except (OSError, ValueError, RecursionError):
        return None


def results(directory: Path, rounds: int | None) -> tuple[list[Line], bytes]:
    """The lines and the models, as a safetensors file, of a run that has ended after so many rounds."""
    try:
        lines = read_rounds(directory / "rounds.jsonl")
        if len(lines) != rounds:
            raise ValueError(f"rounds.jsonl has {len(lines)} of {rounds} rounds")
        models = (directory / MODELS).read_bytes()
        deserialize(models)  # type: ignore[no-untyped-call]
        return lines, models
    except (OSError, ValueError, SafetensorError) as error:
        raise FeddynError(f"the record in {directory} is damaged: {error}") from None


def is_record(directory: Path) -> bool:
    """Whether a folder has the record of a run, and not just a settings file of that name, as `feddyn init` writes."""
    if any((directory / name).exists() for name in ("rounds.jsonl", "timings.jsonl", "summary.json")):
        return True
    try:
        with (directory / "setting.toml").open("rb") as file:
            return file.read(len(HEADING)) == HEADING.encode()
    except OSError:
        return False


def require_same(directory: Path, setting: Setting, rounds: int = 0) -> bool:
    """Refuse a record of so many rounds whose past was defined by another setting than this one; whether the settings
    are the same altogether, or differ in when the run ends."""
    try:
        found = tomllib.loads((directory / "setting.toml").read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"there is no record of a run in {directory}: setting.toml: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{directory / 'setting.toml'} is damaged: {error}") from None
    require_unchanged(directory, found)
    if words := difference(found, setting, rounds):
        raise InputError(f"the run in {directory} has another setting: {words}; take another directory")
    if setting.get("rounds", rounds) < rounds:  # a deployment's goes on for as long as it is asked to
        raise InputError(f"the run in {directory} has {rounds} rounds already: rounds cannot be {setting['rounds']}")
    return key(found) == key(setting)


def require_unchanged(directory: Path, setting: Mapping[str, Any]) -> None:
    """Refuse a record whose setting.toml says something else than when the run was begun, or ended."""
    begun = (directory / "setting.toml").read_text(encoding="utf-8").partition("\n")[0].removeprefix(HEADING)
    try:
        ended = json.loads((directory / "summary.json").read_bytes())["key"]
    except (OSError, ValueError, KeyError, TypeError):
        ended = None
    for other in (ended, begun):
        if isinstance(other, str) and re.fullmatch("[0-9a-f]{16}", other) and other != key(setting):
            raise InputError(
                f"{directory / 'setting.toml'} was changed after the run was begun (it was {other}, and now it is "
                f"{key(setting)}): change it back, or start a run of its own in another directory"
            )
