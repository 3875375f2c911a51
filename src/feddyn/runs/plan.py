"""All that defines a run, as objects; and its description as a setting, which alone repeats the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from feddyn.algorithms.base import Algorithm
from feddyn.checks import require_whole
from feddyn.data.population import Population
from feddyn.engine.grouping import stack_size
from feddyn.engine.links import Links
from feddyn.errors import InputError, nearest
from feddyn.identity import by_hash, describe, evaluation_table, fields_of, table
from feddyn.metrics import Evaluation, Patience, Target
from feddyn.models.flat import FlatModel, Loss
from feddyn.records.layout import Setting
from feddyn.round.participation import Participation, Sampler
from feddyn.solvers.base import Solve, Solver
from feddyn.solvers.own import as_solver
from feddyn.wire import Compressor

OPTIONAL = {
    "target": Target,
    "links": Links,
    "patience": Patience,
    "uplink": Compressor,
    "downlink": Compressor,
}


@dataclass(frozen=True)
class Plan:
    """A run that has not started: its model, population, method, solver and all other choices.

    `origin` says how to make the initial model again, empty if it exists only in memory; `stack` how many devices are
    trained as one batched computation at most (None: as many as pays, 1: a loop); `links` how they fail;
    `uplink` and `downlink` how uploads and broadcasts are compressed. `named` has
    the parts of the setting that a settings file names, and `code` the source files that those names stand for.
    """

    model: nn.Module
    population: Population
    algorithm: Algorithm
    solver: Solve
    participation: Participation
    rounds: int
    seed: int = 0
    loss: Loss = nn.functional.cross_entropy
    evaluation: Evaluation = field(default_factory=Evaluation)
    target: Target | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    stack: int | None = None
    links: Links | None = None
    uplink: Compressor | None = None
    downlink: Compressor | None = None
    patience: Patience | None = None
    named: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        require_whole("", "rounds", self.rounds, 1)
        require_whole("", "seed", self.seed, 0)
        kinds = (("model", nn.Module), ("population", Population), ("algorithm", Algorithm), ("evaluation", Evaluation))
        for name, kind in (*kinds, *((name, one | None) for name, one in OPTIONAL.items())):
            if not isinstance(value := getattr(self, name), kind):
                if isinstance(value, type):
                    raise InputError(f"{name} is the class {value.__name__}: give one of it, {value.__name__}(...)")
                wanted = getattr(kind, "__name__", name.capitalize())
                raise InputError(f"{name} must be a {wanted}, not a {type(value).__name__}")
        for name in ("solver", "loss"):
            if isinstance(value := getattr(self, name), type):
                raise InputError(f"the {name} is the class {value.__name__}: give one of it, {value.__name__}(...)")
            if not callable(value):
                such = "SGD(...)" if name == "solver" else "torch.nn.functional.mse_loss"
                raise InputError(f"the {name} must be a function such as {such}, not {value!r}")
        require_fitting(self.local_solver, self.evaluation, self.target, self.links, self.patience)
        for name in ("rounds", "seed", "participation"):  # NumPy's numbers as Python's, for the record
            if isinstance(value := getattr(self, name), np.generic):
                object.__setattr__(self, name, value.item())
        self.sampler()  # refuses what cannot be meant
        if isinstance(self.participation, Sequence):
            schedule = [[int(device) for device in active] for active in self.participation]
            object.__setattr__(self, "participation", schedule)
        if self.stack is not None:
            require_whole("", "stack", self.stack, 1)

    @cached_property
    def stack_size(self) -> int:
        """How many devices are trained as one batched computation at most; 1: one by one."""
        model = FlatModel(self.model, self.loss)
        parts = (model, self.population, self.algorithm, self.local_solver)
        return stack_size(self.stack, *parts, self.sampler().expected)

    @cached_property
    def local_solver(self) -> Solver:
        """The solver as the engine sees it, also where it is a function; a setting describes it as it was given."""
        return as_solver(self.solver)

    @property
    def may_stop(self) -> bool:
        """Whether the run may end before its last round."""
        return self.patience is not None or (self.target is not None and self.target.stop)

    def sampler(self) -> Sampler:
        """The sampler that says who is active in which round."""
        return Sampler(self.participation, self.population.devices, self.rounds, self.seed)

    def setting(self) -> Setting:
        """The complete setting; what exists only in memory stands there by its hash, and `needs` names it."""
        stack = self.stack_size  # refuses a model that cannot be trained before it is described
        parts: Setting = {
            "seed": self.seed,
            "rounds": self.rounds,
            "participation": self.participation,
            "model": dict(self.origin) or {"memory": True, **describe(self.model)},
            "population": dict(self.population.origin) or {"memory": True, **self.population.identity()},
            "algorithm": table(self.algorithm),
            "solver": table(self.solver),
            "stack": stack,
            **({"links": fields_of(self.links)} if self.links else {}),
            **{name: table(how) for name in ("uplink", "downlink") if (how := getattr(self, name))},
            "evaluation": evaluation_table(self.evaluation),
        }
        if (where := device_of(self.model)) != "cpu":
            parts["device"] = where
        if self.loss is not nn.functional.cross_entropy:
            parts["loss"] = describe(self.loss)
        if self.target is not None:
            parts["target"] = fields_of(self.target)
        if self.patience is not None:
            parts["patience"] = fields_of(self.patience)
        parts |= self.named
        needs = [name for name in ("model", "population") if parts[name].get("memory")]
        needs += [name for name in ("algorithm", "solver", "uplink", "downlink", "loss") if by_hash(parts.get(name))]
        own = parts["evaluation"].get("metrics", ())
        needs += ["evaluation"] if any("source" not in metric for metric in own) else []
        return {"needs": needs, **parts} if needs else parts


def device_of(model: nn.Module) -> str:
    """The torch device of a model's parameters; where it is the process's own CUDA device, of which every rank has
    another one, without its number."""
    found = next(model.parameters()).device
    return "cuda" if found.type == "cuda" and found.index == torch.cuda.current_device() else str(found)


def require_fitting(
    solver: Solver,
    evaluation: Evaluation,
    target: Target | None,
    links: Links | None,
    patience: Patience | None = None,
) -> None:
    """Refuse parts of a plan that do not fit together, whatever the data."""
    if links and links.slow > 0 and not solver.in_steps:
        raise InputError(
            "links: slow devices get a part of their steps done, so the solver must be one in steps, such as SGD"
        )
    for name, part in (("target", target), ("patience", patience)):
        if part is None:
            continue
        if part.model is not None and part.model not in evaluation.models:
            raise InputError(f"the {name} is for the model {part.model!r}: name it in evaluation.models")
        if part.metric is not None and part.metric not in (known := evaluation.directions):
            raise InputError(f"{name}: metric {part.metric!r} is not known; {nearest(part.metric, known)}")
