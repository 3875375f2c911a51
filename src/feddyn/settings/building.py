"""Settings to plans: the objects that a document asks for. docs/settings.md describes the schema."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import nn

from feddyn.checks import require_whole
from feddyn.data.stored import Stored
from feddyn.engine.links import Links
from feddyn.engine.participation import Participation
from feddyn.engine.seeds import integer
from feddyn.errors import InputError
from feddyn.metrics import Evaluation, Target
from feddyn.runs.optimum import optimum
from feddyn.runs.plan import Plan
from feddyn.settings.documents import Document, change, expand
from feddyn.settings.names import METHODS, MODELS, SOLVERS, SOURCES, label
from feddyn.settings.schema import build, choose, parameters

T = TypeVar("T")
DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Named(NamedTuple):
    """A plan and what to call it."""

    label: str
    plan: Plan


def plans(
    document: Document, changes: Sequence[str] = (), seed: int | None = None, shared: dict[str, Any] | None = None
) -> list[Named]:
    """The runs that a settings document asks for, after `--set` changes; one without a comparison has one run.

    `shared` keeps what takes long to make (populations, optima) for other settings.
    """
    singles = expand(document)
    for _, single in singles:
        if seed is not None:
            single["seed"] = seed
            single.get("population", {}).pop("seed", None)  # it follows the run's seed
    for words in changes:
        change([single for _, single in singles], words)
    if "compare" not in document:  # it is called by its method, which may be another one now
        singles = [(label(single["algorithm"]["name"], single["algorithm"]), single) for _, single in singles]
    shared = {} if shared is None else shared
    found = []
    for name, single in singles:
        try:
            found.append(Named(name, _plan(single, shared)))
        except InputError as error:
            raise InputError(f"{name}: {error}" if len(singles) > 1 else str(error)) from None
    return found


def _plan(single: Document, shared: dict[str, Any]) -> Plan:
    """Objects for a single document; `shared` keeps what takes long to make for the next method of a comparison."""

    def once(make: Callable[..., T], *arguments: Any, key: object) -> T:
        name = f"{make.__name__} {key}"
        if name not in shared:
            shared[name] = make(*arguments)
        return cast(T, shared[name])

    for key in ("rounds", "participation"):
        if key not in single:
            raise InputError(f"{key} is missing from the setting")
    seed = single.get("seed", 0)
    require_whole("", "seed", seed, 0)
    source = single.get("population", {})
    population = once(_population, source, seed, key=(source, seed))
    model, origin = _model(single.get("model", {}), population, seed)
    method = choose(METHODS, single["algorithm"], "name", "algorithm")
    algorithm = build(method.algorithm, _without(single["algorithm"], "name"), "algorithm", single["algorithm"]["name"])
    solver = build(choose(SOLVERS, single["solver"], "name", "solver"), _without(single["solver"], "name"), "solver")
    target, decay = single.get("target"), getattr(solver, "weight_decay", 0.0)
    if target is not None:
        target = once(_target, target, model, population, decay, key=(target, source, origin, decay))
    return Plan(
        model,
        population,
        algorithm,
        solver,
        _participation(single["participation"]),
        single["rounds"],
        seed,
        evaluation=build(Evaluation, single.get("evaluation", {}), "evaluation"),
        target=target,
        origin=origin,
        cohort=single.get("cohort"),
        links=build(Links, single["links"], "links") if "links" in single else None,
    )


def _population(table: Document, seed: int) -> Stored:
    source = choose(SOURCES, table, "source", "population")
    pooled = table.get("pooled", False)
    if not isinstance(pooled, bool):
        raise InputError(f"population.pooled must be true or false, not {pooled!r}")
    population = build(source, {"seed": seed, **_without(table, "source", "pooled")}, "population", table["source"])
    return population.pooled() if pooled else population


def _model(table: Document, population: Stored, seed: int) -> tuple[nn.Module, Document]:
    """The initial model and how to make it again; sizes that are not given follow from the data."""
    make = choose(MODELS, table, "name", "model")
    dtype = choose(DTYPES, {"dtype": "float32", **table}, "dtype", "model")
    sizes = {"features": math.prod(population.x.shape[1:]), "classes": int(population.y.max()) + 1}
    known = parameters(make)
    given = {**{key: size for key, size in sizes.items() if key in known}, **_without(table, "name", "dtype")}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(integer(seed, "model"))
        model = build(make, given, "model", table["name"]).to(dtype)
    return model, {"name": table["name"], "dtype": str(dtype).removeprefix("torch."), **given}


def _participation(value: object) -> Participation:
    if isinstance(value, int | float | list):
        return value
    raise InputError(f"participation cannot be {value!r}: give a probability, a number of devices or a list of lists")


def _target(table: Document, model: nn.Module, population: Stored, weight_decay: float) -> Target:
    """The target as given, or with `gap` the exact optimum of the training objective plus that gap."""
    if "gap" not in table:
        return build(Target, table, "target")
    gap = table["gap"]
    if not isinstance(gap, int | float) or isinstance(gap, bool) or not gap > 0:
        raise InputError(f"target.gap must be a number above 0, not {gap!r}")
    if "value" in table or table.get("metric", "objective") != "objective":
        raise InputError("target.gap is measured from the optimum of the objective: leave out target.value and metric")
    value = float(f"{optimum(model, population, weight_decay) + gap:.12g}")  # the same on every processor
    return build(Target, {**_without(table, "gap"), "metric": "objective", "value": value}, "target")


def _without(table: Document, *keys: str) -> Document:
    return {key: value for key, value in table.items() if key not in keys}
