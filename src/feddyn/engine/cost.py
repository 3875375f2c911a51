"""What rounds cost."""

from typing import NamedTuple

from feddyn.algorithms.base import State
from feddyn.engine.links import Answers


class Cost(NamedTuple):
    """Models that a device transmits relative to FedAvg, bytes, gradients of single samples, and bytes to and from
    devices whose upload was not counted."""

    models: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    gradients: int = 0
    wasted: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """The sum of two costs."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))


def cost(answers: Answers, models: int, down: State, upload: State, gradients: int) -> Cost:
    """The cost of a round, of which those who were lost or late are a part."""
    to, back = (sum(vector.nbytes for vector in sent.values()) for sent in (down, upload))
    in_vain = len(answers.lost) + len(answers.late)
    reached = len(answers.counted) + in_vain
    return Cost(models, reached * back, reached * to, gradients, in_vain * (to + back))
