"""What a run gave."""

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from feddyn.algorithms.base import Vector
from feddyn.errors import InputError, nearest
from feddyn.metrics import Figures, Name, headline
from feddyn.models.flat import with_parameters
from feddyn.records.layout import Line, Setting, Status, key
from feddyn.records.lines import COUNTS


@dataclass
class Run:
    """What a run gave: the models after the last round as flat vectors, and a line of the record for every round."""

    setting: Setting
    module: nn.Module = field(repr=False)
    models: dict[str, Vector] = field(repr=False)
    initial: dict[str, Figures]
    history: list[Line] = field(default_factory=list, repr=False)
    status: Status = Status.RUNNING
    message: str = ""
    reached: Line | None = None
    on_devices: dict[str, list[Any]] = field(default_factory=dict, repr=False)

    def model(self, name: Name = "all") -> nn.Module:
        """A module of its own with the parameters of the `server`, `active` or `all` model."""
        if name not in self.models:
            raise InputError(f"the model {name!r} is not known; {nearest(str(name), self.models)}")
        return with_parameters(self.module, self.models[name])

    @property
    def headline(self) -> tuple[str, str]:
        """The model and the metric that count."""
        return headline(self.setting, self.initial)

    @property
    def summary(self) -> dict[str, Any]:
        """How the run ended; `reached` has the counts at the first round in which the target was met."""
        return {
            "key": key(self.setting),
            "status": self.status,
            "message": self.message,
            "rounds": len(self.history),
            "initial": self.initial,
            "reached": None if self.reached is None else {name: self.reached[name] for name in COUNTS},
            "last": self.history[-1] if self.history else None,
        }
