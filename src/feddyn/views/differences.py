"""What settings differ in, in words short enough for a label or a column."""

from collections.abc import Mapping, Sequence
from typing import Any

from feddyn.records.labels import LABELS
from feddyn.views.tables import visible

UNSAID = ("needs", "code", "stack", "cohort", "population.encoding")
"""Keys that follow from others or from the data, or say how a run was computed and not what."""
SEEDS = ("seed", "population.seed")
WIRES = ("uplink", "downlink")
"""Tables of compressors, which are told as one."""
USUAL = {"per": "layer", "rounding": "nearest"}
"""What compressors do unless they are asked otherwise."""
HASH = ".sha256"
FEW, MOST = 4, 6
"""Significant digits of numbers: as many as tell apart what is shown together, between these."""


def flat(setting: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A setting by dotted keys.

    >>> flat({"rounds": 3, "solver": {"lr": 0.1}})
    {'rounds': 3, 'solver.lr': 0.1}
    """
    found: dict[str, Any] = {}
    for key, value in setting.items():
        if before + key in UNSAID:
            continue
        if before + key in WIRES and isinstance(value, Mapping):
            value = compressor(value)
        found |= flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {before + key: value}
    return found


def compressor(table: Mapping[str, Any]) -> str:
    """How something is compressed, in short words.

    >>> compressor({"name": "topk", "fraction": 0.1, "values": {"name": "quantized", "bits": 4}})
    'topk, fraction 0.1 (quantized, bits 4)'
    """
    told = {key: value for key, value in table.items() if USUAL.get(key) != value and not isinstance(value, bool)}
    plain = [f"{key} {words(f'.{key}', value)}" for key, value in told.items() if not isinstance(value, Mapping)]
    inside = [f" ({compressor(value)})" for value in told.values() if isinstance(value, Mapping)]
    return "".join([", ".join(plain).removeprefix("name "), *inside])


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The dotted keys, besides seeds, that not all settings have the same value of. Where methods or solvers differ,
    so do many keys of theirs; those that only some of the settings have come last."""
    flats = [flat(setting) for setting in settings]
    keys = dict.fromkeys(key for one in flats for key in one if key not in SEEDS)
    found = [key for key in keys if any(one.get(key) != flats[0].get(key) for one in flats)]
    first = ["algorithm.name"] if "algorithm.name" in found else []
    shared = [key for key in found if all(key in one for one in flats) and key not in first]
    return first + shared + [key for key in found if key not in shared and key not in first]


def ordered(keys: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys by how much they tell: the method, then what most settings have, and last what is minor."""
    flats = [flat(setting) for setting in settings]
    having = {key: sum(key in one for one in flats) for key in keys}
    return sorted(keys, key=lambda key: (minor(key), key != "algorithm.name", -having[key]))


def short(keys: Sequence[str]) -> dict[str, str]:
    """What to call keys: the last word of each where that is clear.

    >>> short(["algorithm.name", "algorithm.alpha", "solver.lr", "model.name"])
    {'algorithm.name': 'method', 'algorithm.alpha': 'alpha', 'solver.lr': 'lr', 'model.name': 'model'}
    """
    named = {"algorithm.name": "method", "model.name": "model", "solver.name": "solver", "population.source": "data"}
    last = [key.rpartition(".")[2] for key in keys]
    named |= {key: key.removesuffix(HASH) for key in keys if key.endswith(HASH)}
    taken = {named[key] for key in keys if key in named}
    return {
        key: named.get(key) or (word if last.count(word) == 1 and word not in ("name", *taken) else key)
        for key, word in zip(keys, last, strict=True)
    }


def minor(key: str) -> bool:
    """Whether a key says how long a run is and how it is looked at, or follows from the data: what runs are seldom told
    apart by.

    >>> minor("evaluation.every"), minor("solver.lr")
    (True, False)
    """
    return key in ("rounds", "model.features", "model.classes") or key.startswith(
        ("evaluation.", "target.", "patience.")
    )


def digits(settings: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many digits the numbers of some flat settings need, by key, so that unequal ones do not look the same.

    >>> digits([{"lr": 0.123433}, {"lr": 0.123411}, {"alpha": 0.5}])
    {'lr': 5, 'alpha': 4}
    """
    values: dict[str, set[float]] = {}
    for setting in settings:
        for key, value in setting.items():
            if isinstance(value, float):
                values.setdefault(key, set()).add(value)
    return {key: _needed(found) for key, found in values.items()}


def _needed(values: set[float]) -> int:
    enough = (count for count in range(FEW, MOST) if len({_number(one, count) for one in values}) == len(values))
    return next(enough, MOST)


def _number(value: float, count: int) -> str:
    return f"{value:.{count if abs(value) < 1000 else MOST}g}"


def words(key: str, value: object, count: int = FEW) -> str:
    """A value to be read, a number with so many digits; of a hash the first ones, of a schedule that it is one."""
    if value is None:
        return "-"
    if key == "algorithm.name":
        return LABELS.get(str(value), visible(str(value)))
    if key.endswith(HASH):
        return str(value)[:8]
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], list | tuple):
            return "a schedule"
        return ", ".join(words("", one) for one in value)
    if isinstance(value, Mapping):
        return visible(str(value.get("name", "a table")))
    return _number(value, count) if isinstance(value, float) else visible(str(value))


def label(keys: Sequence[str], setting: Mapping[str, Any], counts: Mapping[str, int] = {}) -> str:
    """What to call a run among others: its values of the keys in which they differ, with so many digits, or its
    method."""
    own, names = flat(setting), short(keys)
    parts = []
    for key in keys:
        if key == "algorithm.name":
            parts.append(words(key, own.get(key)))
        elif own.get(key) is not None:
            parts.append(f"{names[key]} {words(key, own[key], counts.get(key, FEW))}")
    return ", ".join(parts) or method(setting)


def method(setting: Mapping[str, Any]) -> str:
    """The method of a setting."""
    return words("algorithm.name", setting.get("algorithm", {}).get("name", "?"))
