"""What settings differ in, in words short enough for a label or a column."""

from collections.abc import Mapping, Sequence
from typing import Any

from feddyn.views.drawing import COLORS
from feddyn.views.tables import visible

METHODS = {name.lower(): name for name in COLORS}
UNSAID = ("needs", "code", "stack", "cohort", "population.encoding")
"""Keys that follow from others or from the data, or say how a run was computed and not what."""
SEEDS = ("seed", "population.seed")
WIRES = ("uplink", "downlink")
"""Tables of compressors, which are told as one."""
USUAL = {"per": "layer", "rounding": "nearest"}
"""What compressors do unless they are asked otherwise."""
HASH = ".sha256"


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


def words(key: str, value: object) -> str:
    """A value to be read; of a hash the first digits, of a schedule that it is one."""
    if value is None:
        return "-"
    if key == "algorithm.name":
        return METHODS.get(str(value), visible(str(value)))
    if key.endswith(HASH):
        return str(value)[:8]
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], list | tuple):
            return "a schedule"
        return ", ".join(words("", one) for one in value)
    if isinstance(value, Mapping):
        return visible(str(value.get("name", "a table")))
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


def label(keys: Sequence[str], setting: Mapping[str, Any]) -> str:
    """What to call a run among others: its values of the keys in which they differ, or its method."""
    own, names = flat(setting), short(keys)
    parts = []
    for key in keys:
        if key == "algorithm.name":
            parts.append(words(key, own.get(key)))
        elif own.get(key) is not None:
            parts.append(f"{names[key]} {words(key, own[key])}")
    return ", ".join(parts) or method(setting)


def method(setting: Mapping[str, Any]) -> str:
    """The method of a setting."""
    return words("algorithm.name", setting.get("algorithm", {}).get("name", "?"))
