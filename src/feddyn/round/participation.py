"""Who is active in a round."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from feddyn.errors import InputError
from feddyn.round.seeds import derive

Participation: TypeAlias = float | int | Sequence[Sequence[int]]
"""A float in (0, 1]: each device with that probability (1.0: everybody). An int of 1 or more: so many devices, drawn
without replacement (1: one device). Lists of device numbers: a schedule, one list a round."""

RARE = 0.01
"""Where a draw finds anybody with a smaller probability than this, drawing again and again would take too long."""


@dataclass(frozen=True)
class Sampler:
    """The active devices of each round, in rising order; they depend only on (seed, round)."""

    participation: Participation
    devices: int
    rounds: int
    seed: int

    def __post_init__(self) -> None:
        require_participation(self.participation, self.rounds, self.devices)

    @property
    def expected(self) -> float:
        """How many devices are active in a round, in the mean."""
        p = self.participation
        if isinstance(p, Sequence):
            return sum(map(len, p)) / len(p)
        return p if isinstance(p, int) else p * self.devices

    def active(self, round: int) -> list[int]:
        """The devices active in a round, counted from 0."""
        p, m = self.participation, self.devices
        if isinstance(p, Sequence):
            return sorted(int(device) for device in p[round])
        rng = np.random.default_rng(derive(self.seed, "participation", round))
        count = p if isinstance(p, int) else _some(rng, m, p)
        # independent coins are a binomial number of heads and then a uniform choice of who: a cost of O(active)
        return sorted(rng.choice(m, count, replace=False, shuffle=False).tolist())


def require_participation(p: object, rounds: int, devices: int | None = None) -> None:
    """Refuse what cannot be meant for so many rounds and devices (None: their number is not known yet)."""
    hint = "a float in (0, 1] is a probability, a whole number from 1 is a number of devices, lists are a schedule"
    if isinstance(p, bool) or not isinstance(p, int | float | Sequence) or isinstance(p, str):
        raise InputError(f"participation cannot be {p!r}: {hint}")
    if isinstance(p, float) and not 0 < p <= 1:
        raise InputError(f"participation cannot be {p}: {hint}")
    if isinstance(p, int) and not 1 <= p <= (devices or p):
        raise InputError(f"participation cannot be {p}{f' of {devices} devices' if devices else ''}: {hint}")
    if isinstance(p, Sequence):
        _require_schedule(p, rounds, devices)


def _require_schedule(schedule: Sequence[Sequence[int]], rounds: int, devices: int | None) -> None:
    if len(schedule) < rounds:
        raise InputError(
            f"participation: the schedule has {len(schedule)} rounds, but {rounds} are to be run: add a list for each"
        )
    numbers = f"from 0 to {devices - 1}" if devices else "from 0 on"
    for number, active in enumerate(schedule, 1):
        where = f"participation: round {number} of the schedule"
        if isinstance(active, str) or not isinstance(active, Sequence):
            raise InputError(f"{where} must be a list of device numbers, not {active!r}")
        if not active:
            raise InputError(f"{where} is empty: name at least one device")
        for device in active:
            if isinstance(device, bool) or not isinstance(device, int | np.integer):
                raise InputError(f"{where} names {device!r}: devices are whole numbers {numbers}")
            if not 0 <= device < (devices or device + 1):
                raise InputError(f"{where} names device {device}: devices are numbered {numbers.removeprefix('from ')}")
        if len(set(active)) < len(active):
            raise InputError(f"{where} names a device twice")


def _some(rng: np.random.Generator, devices: int, p: float) -> int:
    """How many of the devices are active if each is with probability p and at least one is."""
    anybody = 1.0 if p == 1 else -math.expm1(devices * math.log1p(-p))
    if anybody >= RARE:
        while True:  # a draw without any device is drawn again
            if count := int(rng.binomial(devices, p)):
                return count
    # by inversion: the binomial probabilities from 1 on, divided by that of anybody
    count, draw = 1, rng.random() * anybody
    probability = devices * p * math.exp((devices - 1) * math.log1p(-p))
    while (draw := draw - probability) > 0 and count < devices:
        probability *= (devices - count) / (count + 1) * p / (1 - p)
        count += 1
    return count
