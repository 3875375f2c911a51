r"""How the step size changes from round to round: lr_t is multiplied by s(t), t = 0, 1, ... counting the rounds.

With a warm-up of w rounds, s(t) = (t + 1) / (w + 1) for t < w, which rises to 1; after it

    Cosine   s(t) = least + (1 - least) (1 + cos(pi (t - w) / (T - w))) / 2 ,   T = rounds;  from T on as at T - 1
    Steps    s(t) = factor^(how many of the rounds `at`, or of the multiples of `every`, are at most t)
    Warmup   s(t) = 1

A schedule knows nothing of how long the run is, so that a run with more rounds has the same past. (Loshchilov & Hutter,
ICLR 2017; Goyal et al., 2017.)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError


class Schedule(ABC):
    """What the step size is multiplied by, round by round. Final classes implement it; none extends another."""

    @abstractmethod
    def __call__(self, round: int) -> float:
        """The factor in a round, counted from 0; above 0."""


@final
@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine for the step size, from 1 to (nearly) `least` over so many rounds, the `warmup` included."""

    rounds: int
    least: float = 0.0
    warmup: int = 0

    def __post_init__(self) -> None:
        require_whole("Cosine", "rounds", self.rounds, 1)
        require_number("Cosine", "least", self.least, zero=True)
        require_whole("Cosine", "warmup", self.warmup, 0)
        if self.least > 1 or self.warmup >= self.rounds:
            words = f"not {self.least:g} and {self.warmup} of {self.rounds}"
            raise InputError(f"Cosine: least is at most 1 and warmup below rounds, {words}")

    def __call__(self, round: int) -> float:
        if round < self.warmup:
            return _rising(round, self.warmup)
        part = (min(round, self.rounds - 1) - self.warmup) / (self.rounds - self.warmup)
        return self.least + (1 - self.least) * (1 + math.cos(math.pi * part)) / 2


@final
@dataclass(frozen=True)
class Steps(Schedule):
    """Multiplies the step size by `factor` every so many rounds, or `at` some of them."""

    every: int | None = None
    at: Sequence[int] | None = None
    factor: float = 0.1
    warmup: int = 0

    def __post_init__(self) -> None:
        require_number("Steps", "factor", self.factor)
        require_whole("Steps", "warmup", self.warmup, 0)
        if (self.every is None) == (self.at is None):
            raise InputError("Steps: give either every (so many rounds) or at (a list of rounds), and not both")
        if self.every is not None:
            require_whole("Steps", "every", self.every, 1)
        for round in self.at or ():
            require_whole("Steps", "a round of at", round, 1)
        if self.at is not None:
            object.__setattr__(self, "at", tuple(sorted(int(round) for round in self.at)))

    def __call__(self, round: int) -> float:
        if round < self.warmup:
            return _rising(round, self.warmup)
        steps = round // self.every if self.every is not None else sum(at <= round for at in self.at or ())
        return float(self.factor**steps)


@final
@dataclass(frozen=True)
class Warmup(Schedule):
    """A step size that rises to its full value over so many rounds, and stays there."""

    rounds: int

    def __post_init__(self) -> None:
        require_whole("Warmup", "rounds", self.rounds, 1)

    def __call__(self, round: int) -> float:
        return _rising(round, self.rounds) if round < self.rounds else 1.0


def _rising(round: int, warmup: int) -> float:
    return (round + 1) / (warmup + 1)
