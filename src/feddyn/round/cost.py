"""What rounds cost. Needs no torch, so that a ledger can be read without it."""

from typing import NamedTuple


class Cost(NamedTuple):
    """Models that a device transmits relative to FedAvg, bytes, gradients of single samples, and bytes to and from
    devices whose upload was not counted."""

    transmitted: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    gradients: int = 0
    wasted: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """The sum of two costs."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))

    def line(self, round: int) -> dict[str, int]:
        """How a record has the cost of so many rounds."""
        return {"round": round, **self._asdict()}
