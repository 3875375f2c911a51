"""What a record tells that a diagnosis needs, and the form of a finding."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from feddyn.records.recorded import Recorded

LEAST = 12
"""Rounds before which nothing is said of how a run develops."""


@dataclass(frozen=True)
class Finding:
    """What is going on, the figures that show it, and what to try."""

    name: str
    words: str
    figures: Mapping[str, str]
    advice: str

    def __str__(self) -> str:
        judged = ", ".join(f"{name} {value}" for name, value in self.figures.items())
        return f"{self.name}: {self.words} (judged by: {judged}). Try: {self.advice}."


@dataclass(frozen=True)
class Evidence:
    """A run, and series taken from its lines."""

    run: Recorded

    @property
    def lines(self) -> Sequence[Mapping[str, Any]]:
        """The rounds in which somebody was active."""
        return [line for line in self.run.history if line.get("active")]

    @property
    def long(self) -> bool:
        """Whether there are rounds enough to see a development."""
        return len(self.lines) >= LEAST

    def table(self, name: str) -> Mapping[str, Any]:
        """A table of the setting."""
        found = self.run.setting.get(name, {})
        return found if isinstance(found, Mapping) else {}

    def series(self, kind: str, name: str) -> list[float]:
        """A norm of the server (`norms`) or of the devices (`devices`), round by round."""
        return [line[kind][name] for line in self.lines if name in line.get(kind, {})]

    @property
    def method(self) -> str:
        """The method's name in settings."""
        return str(self.table("algorithm").get("name"))

    @cached_property
    def ever_active(self) -> set[int]:
        """The devices that were active at all."""
        return {device for line in self.lines for device in line["active"]}

    @cached_property
    def devices(self) -> int | None:
        """How many devices there are; None: the record does not say."""
        listed = self.run.on_devices.get("device")
        count = len(listed) if listed else self.table("population").get("devices")
        return count if isinstance(count, int) else None

    @cached_property
    def steps(self) -> float | None:
        """Steps that an active device takes in a round, on average; None: the solver does not walk in steps."""
        solver = self.table("solver")
        if "lr" not in solver or ("steps" not in solver and "epochs" not in solver):
            return None
        if "steps" in solver or "batch_size" not in solver:
            return float(solver.get("steps", solver.get("epochs")))
        work = sum(len(line["active"]) for line in self.lines)
        return self.run.history[-1]["gradients"] / work / solver["batch_size"] if work else None

    def rate(self, round: int) -> float:
        """The step size in a round, counted from 0, by the solver's own decay."""
        solver = self.table("solver")
        halvings = round // solver["halve_every"] if "halve_every" in solver else 0
        return float(solver["lr"] * solver.get("lr_decay", 1.0) ** round * 0.5**halvings)


def early_late(values: Sequence[float]) -> tuple[float, float]:
    """The medians of the second fifth of a series and of its last fifth: the first one is left out because every run
    begins with a jump."""
    fifth = max(len(values) // 5, 1)
    return statistics.median(values[fifth : 2 * fifth]), statistics.median(values[-fifth:])
