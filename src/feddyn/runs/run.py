"""What a run gave."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from feddyn.algorithms.base import Vector
from feddyn.batches import Batch, owned
from feddyn.data.datasets.table import features
from feddyn.data.population import Arrays, Population
from feddyn.errors import InputError, nearest
from feddyn.metrics import Figures, Kept
from feddyn.models.flat import with_parameters
from feddyn.records.files import home
from feddyn.records.layout import Line, Setting, Status, summary
from feddyn.records.recorded import Recorded
from feddyn.runs.export import export
from feddyn.runs.parts import Evaluated, Parts, evaluate
from feddyn.views.curves import of_run
from feddyn.views.differences import method
from feddyn.views.html import rendered
from feddyn.views.naming import named
from feddyn.views.portrait import portrait

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(repr=False)
class Run(Recorded):
    """What a run gave, just now or by `feddyn.load`: the models after the last round as flat vectors, and a line of the
    record for every round. `make` makes the network again, and what else is needed to use it; `classes` has every
    device's samples by class, where there are such."""

    setting: Setting
    make: Callable[[], Parts]
    models: dict[str, Vector]
    initial: dict[str, Figures]
    history: list[Line] = field(default_factory=list)
    status: Status = Status.RUNNING
    message: str = ""
    reached: Line | None = None
    on_devices: dict[str, list[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    path: Path | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    classes: Sequence[Sequence[int]] = ()

    @cached_property
    def parts(self) -> Parts:
        """The network and what else is needed to use it."""
        return self.make()

    def model(self, name: Kept | None = None) -> nn.Module:
        """A module of its own, in eval mode, with the parameters of the `server`, `active` or `all` model after the
        last round, or of the `best` round's; by default of the one that counts after the last round."""
        chosen = name or self.headline[0]
        if not self.models:
            raise InputError("the run has no models: its record has none (yet)")
        if chosen not in self.models:
            raise InputError(f"the model {chosen!r} is not known; {nearest(str(chosen), self.models)}")
        return with_parameters(self.parts.module, self.models[chosen]).eval()

    def predict(self, x: "Arrays | str | PathLike[str]", name: Kept | None = None) -> Batch:
        """The outputs of a model (by default the one that counts) for raw samples, one a row: they go through the run's
        transform first. Of a classifier, `argmax(1)` of them are the classes.

        A run on a table takes the path of another one (CSV, Parquet, npz) with the same features, or its columns by
        name, which are encoded as those of its own were; `run.setting["population"]["classes"]` are the names of the
        classes.
        """
        population = self.setting.get("population", {})
        if population.get("source") == "table" and (
            isinstance(x, str | PathLike | Mapping) or "encoding" in population
        ):
            x = features(population, home(Path(x)) if isinstance(x, str | PathLike) else x)
        elif isinstance(x, str | PathLike):
            raise InputError(f"the run was not made on a table: give it an array of samples, not the path {x}")
        return self.parts.outputs(self.model(name), x)

    def evaluate(self, data: Population, name: Kept | None = None) -> Evaluated:
        """The figures of a model (by default the one that counts) on other data: of all samples (or of the test set, if
        the population has one) and of each device's own. Nothing is trained."""
        if not isinstance(data, Population):
            raise InputError(
                f"evaluate takes a population, not a {type(data).__name__}: feddyn.Population.from_arrays(x, y, device)"
            )
        return evaluate(self.parts, self.model(name), data)

    def state_dict(self, name: Kept | None = None) -> dict[str, torch.Tensor]:
        """What training can change of a model (by default the one that counts), and its buffers, by their names."""
        model = self.model(name)
        frozen = {key for key, parameter in model.named_parameters() if not parameter.requires_grad}
        kept = {key: value for key, value in model.state_dict().items() if isinstance(value, torch.Tensor)}
        return owned({key: value for key, value in kept.items() if key not in frozen})

    def export(self, path: str | PathLike[str], name: Kept | None = None) -> Path:
        """Write a model (by default the one that counts) to a new file for others: .pt or .safetensors with the
        state_dict, .onnx with the whole computation from raw samples on."""
        return export(self.model(name), self.parts.transform, self.inputs, Path(path))

    def plot(self, metric: str | None = None) -> "Figure":
        """A metric (by default the one that counts) of the evaluated models over rounds; needs matplotlib."""
        return of_run(self, metric)

    def __repr__(self) -> str:
        """The run in a line: its method, how far it is, its figure, and where its record is."""
        parts = [
            method(self.setting),
            f"{self.outcome}, {len(self.history)} of {self.setting.get('rounds', '?')} rounds",
        ]
        if self.evaluated:
            parts.append(f"{named(self.headline[1], self.headline[0])} {self.figures[-1]:.4g}")
        return f"Run({', '.join([*parts, *([str(self.path)] if self.path else [])])})"

    def _repr_html_(self) -> str:
        return rendered(portrait(self), self.plot if self.evaluated else None)

    @property
    def _best(self) -> dict[str, Any] | None:
        (model, metric), line = self.watched, self.best_round
        if line is None:
            return None
        return {"round": line["round"], "model": model, metric: line["models"][model][metric]}

    @property
    def summary(self) -> dict[str, Any]:
        """How the run ended, as its record says it."""
        words = self.setting, self.status, self.message, self.history, self.initial, self.reached, self._best
        return summary(*words)
