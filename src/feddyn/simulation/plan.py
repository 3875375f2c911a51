"""All that defines a run, as objects; and its description as a setting, which alone repeats the run."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import nn

from feddyn.algorithms.base import Algorithm
from feddyn.data.population import Population
from feddyn.errors import InputError
from feddyn.local.work import Solver
from feddyn.models.flat import Loss
from feddyn.simulation.evaluation import Evaluation, Target
from feddyn.simulation.participation import Participation, Sampler
from feddyn.simulation.record import Setting


@dataclass(frozen=True)
class Plan:
    """A run before it starts. `origin` says how to make the initial model again, empty if it exists only in memory."""

    model: nn.Module
    population: Population
    algorithm: Algorithm
    solver: Solver
    participation: Participation
    rounds: int
    seed: int = 0
    loss: Loss = nn.functional.cross_entropy
    evaluation: Evaluation = field(default_factory=Evaluation)
    target: Target | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value, least in (("rounds", self.rounds, 1), ("seed", self.seed, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.target is not None and self.target.model not in self.evaluation.models:
            raise InputError(f"the target is for the model {self.target.model!r}: name it in evaluation.models")
        for name, kind in (("population", Population), ("algorithm", Algorithm)):
            if not isinstance(value := getattr(self, name), kind):
                raise InputError(f"{name} must be a {kind.__name__}, not {value!r}")
        if not callable(self.solver) or isinstance(self.solver, type):
            raise InputError(f"the solver must be a callable such as SGD(lr=0.1, epochs=5), not {self.solver!r}")
        self.sampler()

    def sampler(self) -> Sampler:
        """Who is active when."""
        return Sampler(self.participation, self.population.devices, self.rounds, self.seed)

    def setting(self) -> Setting:
        """The complete setting; what exists only in memory stands there by its hash, and `needs` names it."""
        parts: Setting = {
            "seed": self.seed,
            "rounds": self.rounds,
            "participation": self.participation,
            "model": dict(self.origin) or _in_memory(self.model),
            "population": dict(self.population.origin) or _population_in_memory(self.population),
            "algorithm": table(self.algorithm),
            "solver": table(self.solver),
            "evaluation": {"every": self.evaluation.every, "models": list(self.evaluation.models)},
        }
        if self.loss is not nn.functional.cross_entropy:
            parts["loss"] = _qualified(self.loss)
        if self.target is not None:
            parts["target"] = _fields(self.target)
        needs = [name for name in ("model", "population", "algorithm", "solver") if parts[name].get("memory")]
        needs += ["loss"] if "loss" in parts else []
        return {"needs": needs, **parts} if needs else parts


def table(part: object) -> dict[str, Any]:
    """An algorithm or solver as a table: its name, the class's in lower case, and its parameters.

    >>> from feddyn.algorithms import FedDyn
    >>> table(FedDyn(alpha=0.1))
    {'name': 'feddyn', 'alpha': 0.1}
    """
    known = type(part).__module__.startswith("feddyn.")
    if not known:
        return {"memory": True, "name": _qualified(part), **_fields(part)}
    return {"name": type(part).__name__.lower(), **_fields(part)}


def _fields(part: object) -> dict[str, Any]:
    """A dataclass's fields that TOML can hold; None is said by leaving a field out."""
    if not is_dataclass(part):
        return {}
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {
        name: value.tolist() if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
        if value is not None
    }


def _qualified(part: object) -> str:
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}.{named.__qualname__}"


def _in_memory(model: nn.Module) -> dict[str, Any]:
    digest = hashlib.sha256(str(model).encode())
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return {"memory": True, "name": _qualified(model), "sha256": digest.hexdigest()}


def _population_in_memory(population: Population) -> dict[str, Any]:
    return {
        "memory": True,
        "devices": population.devices,
        "samples": len(population.y),
        "sha256": population.sha256(),
    }
