r"""Links that fail: uploads that are lost or late, devices that go offline for stretches, and slow ones.

A device whose upload was not counted does not keep what it computed, as if it had not been asked: otherwise its state
and the server's would no longer belong together (for FedDyn, h = 1/m SUM share_k lambda_k).

Whether a device is offline follows a Markov chain of its own: an online device goes offline with probability `leave` a
round, an offline one comes back with probability `back`, so that it is away for 1/back rounds in the mean, and for
leave / (leave + back) of the time. All draws depend on (seed, round, device) only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from feddyn.checks import require_number
from feddyn.errors import InputError
from feddyn.round.seeds import device_seeds
from feddyn.solvers.order import Seeds, hashes

LOOK_BACK = 64
"""Rounds of a device's chain that are drawn at a time."""


class Answers(NamedTuple):
    """What became of those who were asked; `effort` is the part of its work that each counted device gets done."""

    counted: list[int]
    effort: list[float]
    offline: list[int]
    lost: list[int]
    late: list[int]


@dataclass(frozen=True)
class Links:
    """Simulated links between devices and server, and how often they fail.

    lost, late: the probability that an upload never arrives, or after the round is closed; leave, back: those of
    going offline and of coming back; away: for each round the devices that are offline besides; slow: the probability
    that a device gets only a part of its steps done, each part as likely as any other.
    """

    lost: float = 0.0
    late: float = 0.0
    leave: float = 0.0
    back: float = 1.0
    slow: float = 0.0
    away: Sequence[Sequence[int]] = field(default=())

    def __post_init__(self) -> None:
        for name in ("lost", "late", "leave", "back", "slow"):
            value = getattr(self, name)
            require_number("links", name, value, zero=True)
            if value > 1:
                raise InputError(f"links: {name} is a probability, at most 1, not {value}")
        if self.lost + self.late > 1:
            raise InputError(f"links: lost and late together are at most 1, not {self.lost + self.late}")
        if self.leave + self.back > 1 and self.leave > 0:
            raise InputError(
                f"links: leave + back is at most 1, not {self.leave + self.back}: devices are away for 1/back rounds"
            )
        if self.leave > 0 and self.back == 0:
            raise InputError("links: back must be above 0, or everybody ends up offline")
        for number, devices in enumerate(self.away, 1):
            if isinstance(devices, str) or not all(isinstance(k, int) and k >= 0 for k in devices):
                raise InputError(f"links: away must be lists of device numbers, but round {number} has {devices!r}")

    def answers(self, seed: int, round: int, asked: Sequence[int]) -> Answers:
        """Who of the asked devices answers in a round, counted from 0."""
        first = np.zeros(1, dtype=np.uint64)
        uploads = _fractions(device_seeds(seed, "links", round, asked), first)
        efforts = _fractions(device_seeds(seed, "effort", round, asked), first)
        missing = set(self.away[round]) if round < len(self.away) else set()
        offline = self._offline(seed, round, asked)
        kinds: dict[str, list[int]] = {"counted": [], "offline": [], "lost": [], "late": []}
        effort = []
        for k, u, e, is_offline in zip(asked, uploads, efforts, offline, strict=True):
            if is_offline or k in missing:
                kinds["offline"].append(k)
            elif u < self.lost:
                kinds["lost"].append(k)
            elif u < self.lost + self.late:
                kinds["late"].append(k)
            else:
                kinds["counted"].append(k)
                effort.append(float(e / self.slow) if e < self.slow else 1.0)
        return Answers(kinds["counted"], effort, kinds["offline"], kinds["lost"], kinds["late"])

    def _offline(self, seed: int, round: int, asked: Sequence[int]) -> npt.NDArray[np.bool_]:
        """The state of every asked device's chain. A draw below `leave` ends offline and one from 1 - back on ends
        online, whatever came before; in between nothing changes. So the last draw that decides is the state."""
        state = np.zeros(len(asked), dtype=np.bool_)
        if self.leave == 0:
            return state
        seeds = device_seeds(seed, "offline", 0, asked)
        open_cases = np.arange(len(asked))
        for end in range(round + 1, 0, -LOOK_BACK):
            rounds = np.arange(end - 1, max(end - 1 - LOOK_BACK, -1), -1, dtype=np.int64)
            draws = _fractions(seeds[open_cases, None], rounds.astype(np.uint64))
            decides = (draws < self.leave) | (draws >= 1 - self.back)
            first = decides.argmax(1)
            decided = decides.any(1)
            state[open_cases[decided]] = draws[decided, first[decided]] < self.leave
            open_cases = open_cases[~decided]
            if len(open_cases) == 0:
                break
        return state


def _fractions(seeds: Seeds, positions: Seeds) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1)."""
    with np.errstate(over="ignore"):
        bits = hashes(seeds, positions) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53
