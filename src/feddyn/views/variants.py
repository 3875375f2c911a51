"""Runs that differ by their seed alone belong together; what all others differ in is what they are called by."""

from collections.abc import Sequence
from dataclasses import dataclass

from feddyn.records.recorded import Recorded
from feddyn.views.differences import HASH, SEEDS, differing, digits, flat, label, method, minor


@dataclass(frozen=True)
class Variant:
    """Runs that differ by their seed alone, and what to call them."""

    label: str
    runs: Sequence[Recorded]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [_seed(run) for run in self.runs]


def variants(runs: Sequence[Recorded]) -> tuple[list[str], list[Variant]]:
    """The dotted keys in which runs differ, and the runs that differ by their seed alone together, in order.

    A model or data that is made in memory from the seed has another hash for every seed. Runs that differ by hashes
    belong together where each seed occurs once.
    """
    alike: dict[str, list[Recorded]] = {}
    for run in runs:
        alike.setdefault(_identity(run, hashes=False), []).append(run)
    groups: list[list[Recorded]] = []
    for group in alike.values():
        seeds = [run.setting.get("seed", 0) for run in group]
        if len(set(seeds)) == len(seeds):
            groups.append(group)
            continue
        equal: dict[str, list[Recorded]] = {}
        for run in group:
            equal.setdefault(_identity(run, hashes=True), []).append(run)
        groups += equal.values()
    keys = differing([group[0].setting for group in groups])
    if len(groups) == len(alike):  # no hash is needed to tell them apart
        keys = [key for key in keys if not key.endswith(HASH)]
    groups = [sorted(group, key=_seed) for group in groups]
    counts = digits([flat(group[0].setting) for group in groups])
    labels = [label(_telling(keys, group, groups), group[0].setting, counts) for group in groups]
    return keys, [Variant(words, group) for words, group in zip(labels, groups, strict=True)]


def _telling(keys: Sequence[str], group: Sequence[Recorded], groups: Sequence[Sequence[Recorded]]) -> list[str]:
    """The keys that a label needs: the method, where they differ, and what others of the same method differ in; minor
    ones only where others leave two alike."""
    own = method(group[0].setting)
    peers = [other[0].setting for other in groups if method(other[0].setting) == own]
    inside = differing(peers)
    needed = [key for key in keys if key == "algorithm.name" or key in inside]
    plain = [key for key in needed if not minor(key)]
    seen = {repr([flat(peer).get(key) for key in plain]) for peer in peers}
    return plain if len(seen) == len(peers) else needed


def _seed(run: Recorded) -> int:
    return int(run.setting.get("seed", 0))


def _identity(run: Recorded, hashes: bool) -> str:
    """All that a run's setting says, without its seeds."""
    kept = {key: value for key, value in flat(run.setting).items() if key not in SEEDS}
    return repr(sorted((key, str(value)) for key, value in kept.items() if hashes or not key.endswith(HASH)))
