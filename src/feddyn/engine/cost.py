"""What rounds cost."""

from typing import NamedTuple

from feddyn.engine.wires import Traffic


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


def cost(models: int, down: Traffic, up: Traffic, gradients: int) -> Cost:
    """The cost of a round, of which those who were lost or late are a part."""
    return Cost(models, sum(up), sum(down), gradients, up.in_vain + down.in_vain)
