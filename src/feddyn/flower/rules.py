"""How a federation is run: when a round starts, and when it is closed."""

from collections.abc import Sequence
from dataclasses import dataclass

from feddyn.checks import require_number, require_whole
from feddyn.errors import InputError
from feddyn.round.participation import Participation, require_participation


@dataclass(frozen=True)
class Rules:
    """The terms of a federation.

    rounds, participation, seed: as in `feddyn.simulate`; of the sites that are online, `participation` picks.
    sites: how many must have joined before the first round. least: fewer uploads than that do not close a round; it is
    repeated. deadline, welcome: seconds that sites have to train, and to join or settle. poll: seconds between looks.
    norm_limit: an upload whose norm is more than so many times the round's median is refused.
    """

    rounds: int
    participation: Participation = 1.0
    seed: int = 0
    sites: int = 1
    least: int = 1
    deadline: float = 600.0
    welcome: float = 120.0
    poll: float = 0.5
    norm_limit: float = 100.0

    def __post_init__(self) -> None:
        for name in ("rounds", "sites", "least"):
            require_whole("", name, getattr(self, name), 1)
        require_whole("", "seed", self.seed, 0)
        for name in ("deadline", "welcome", "poll", "norm_limit"):
            require_number("", name, getattr(self, name))
        require_participation(self.participation, self.rounds)
        if (there := fewest(self.participation, self.rounds)) is not None and there < self.least:
            raise InputError(
                f"least is {self.least}, but participation lets {there} of the sites train in a round: no such round "
                "could be closed"
            )


def fewest(participation: Participation, rounds: int) -> int | None:
    """How many sites may train in each of so many rounds, at the least; None: that depends on who is there."""
    if isinstance(participation, Sequence):
        return min(map(len, participation[:rounds]), default=0)
    return participation if isinstance(participation, int) else None
