"""Random numbers that depend on (seed, purpose, round, device) and on nothing else.

So neither the order in which devices are trained nor who else is active changes a bit of a device's result, and all
methods of a comparison see the same schedule, initial model and batches.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from feddyn.solvers.order import Seeds, hashes

Purpose: TypeAlias = Literal[
    "participation", "batches", "layers", "model", "links", "effort", "offline", "uplink", "downlink"
]
"""What random numbers are for. The place in this list is a part of their seed: new ones go to its end."""
_KEYS: dict[Purpose, int] = {purpose: number for number, purpose in enumerate(get_args(Purpose))}


def derive(seed: int, purpose: Purpose, *where: int) -> np.random.SeedSequence:
    """The seed sequence of a purpose at a place: (round, device), or less."""
    return np.random.SeedSequence(seed, spawn_key=(_KEYS[purpose], *where))


def integer(seed: int, purpose: Purpose, *where: int) -> int:
    """The seed of a purpose at a place, as a number of 63 bits."""
    return int(derive(seed, purpose, *where).generate_state(1, np.uint64)[0] >> np.uint64(1))


def device_seeds(seed: int, purpose: Purpose, round: int, devices: Sequence[int]) -> Seeds:
    """A seed for each of many devices in a round."""
    stream = np.array(integer(seed, purpose, round), dtype=np.uint64)
    with np.errstate(over="ignore"):
        return hashes(stream, np.asarray(devices, dtype=np.uint64))
