"""What a run gave."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from feddyn.algorithms.base import Vector
from feddyn.batches import Batch
from feddyn.data.population import Arrays, Population
from feddyn.errors import InputError, nearest
from feddyn.metrics import Figures, Name
from feddyn.models.flat import with_parameters
from feddyn.records.layout import Line, Setting, Status, key
from feddyn.records.lines import COUNTS
from feddyn.records.recorded import Recorded
from feddyn.runs.parts import Evaluated, Parts, evaluate
from feddyn.views.curves import of_run
from feddyn.views.html import rendered
from feddyn.views.portrait import portrait

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Run(Recorded):
    """What a run gave, just now or by `feddyn.load`: the models after the last round as flat vectors, and a line of the
    record for every round. `make` makes the network again, and what else is needed to use it."""

    setting: Setting
    make: Callable[[], Parts] = field(repr=False)
    models: dict[str, Vector] = field(repr=False)
    initial: dict[str, Figures]
    history: list[Line] = field(default_factory=list, repr=False)
    status: Status = Status.RUNNING
    message: str = ""
    reached: Line | None = None
    on_devices: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    seconds: float = 0.0
    path: Path | None = None

    @cached_property
    def parts(self) -> Parts:
        """The network and what else is needed to use it."""
        return self.make()

    def model(self, name: Name | None = None) -> nn.Module:
        """A module of its own, in eval mode, with the parameters of the `server`, `active` or `all` model; by default
        of the one that counts."""
        chosen = name or self.headline[0]
        if not self.models:
            raise InputError("the run has no models: its record has none (yet)")
        if chosen not in self.models:
            raise InputError(f"the model {chosen!r} is not known; {nearest(str(chosen), self.models)}")
        return with_parameters(self.parts.module, self.models[chosen]).eval()

    def predict(self, x: Arrays, name: Name | None = None) -> Batch:
        """The outputs of a model (by default the one that counts) for raw samples, one a row: they go through the run's
        transform first. Of a classifier, `argmax(1)` of them are the classes."""
        return self.parts.outputs(self.model(name), x)

    def evaluate(self, data: Population, name: Name | None = None) -> Evaluated:
        """The figures of a model (by default the one that counts) on other data: of all samples (or of the test set, if
        the population has one) and of each device's own. Nothing is trained."""
        return evaluate(self.parts, self.model(name), data)

    def state_dict(self, name: Name | None = None) -> dict[str, torch.Tensor]:
        """What training can change of a model (by default the one that counts), and its buffers, by their names."""
        model = self.model(name)
        frozen = {key for key, parameter in model.named_parameters() if not parameter.requires_grad}
        kept = {key: value for key, value in model.state_dict().items() if isinstance(value, torch.Tensor)}
        return {key: value.detach().cpu().contiguous().clone() for key, value in kept.items() if key not in frozen}

    def plot(self, metric: str | None = None) -> "Figure":
        """A metric (by default the one that counts) of the evaluated models over rounds; needs matplotlib."""
        return of_run(self, metric)

    def _repr_html_(self) -> str:
        return rendered(portrait(self), self.plot if self.evaluated else None)

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
