"""Settings files: TOML that says what to run. docs/settings.md describes the schema."""

import copy
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import torch
from torch import nn

from feddyn.checks import require_whole
from feddyn.data.population import Population
from feddyn.errors import InputError, nearest
from feddyn.experiments.methods import METHODS, MODELS, SOLVERS, SOURCES, label
from feddyn.experiments.optimum import optimum
from feddyn.experiments.schema import build, choose, parameters
from feddyn.simulation.evaluation import Evaluation, Target
from feddyn.simulation.participation import Participation
from feddyn.simulation.plan import Plan
from feddyn.simulation.randomness import integer

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]

TABLES = ("model", "population", "algorithm", "solver", "evaluation", "target")
SCALARS = ("seed", "rounds", "participation")
EXCLUSIVE = (("steps", "epochs"), ("epochs", "steps"))
ENTRY = {"label", "algorithm", "solver"}
DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Named(NamedTuple):
    """A plan and what to call it."""

    label: str
    plan: Plan


def read(path: Path) -> Document:
    """A settings file as it stands."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no settings file {path}") from None
    except OSError as error:
        raise InputError(f"the settings file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the settings file {path} is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the settings file {path} is not valid TOML: {error}") from None


def plans(document: Document, changes: Sequence[str] = (), seed: int | None = None) -> list[Named]:
    """The runs that a settings document asks for, after `--set` changes; one without a comparison has one run."""
    singles = _expand(document)
    for _, single in singles:
        if seed is not None:
            single["seed"] = seed
            single.get("population", {}).pop("seed", None)  # it follows the run's seed
    for change in changes:
        _change([single for _, single in singles], change)
    shared: dict[str, Any] = {}
    found = []
    for name, single in singles:
        try:
            found.append(Named(name, _plan(single, shared)))
        except InputError as error:
            raise InputError(f"{name}: {error}" if len(singles) > 1 else str(error)) from None
    return found


def _expand(document: Document) -> list[tuple[str, Document]]:
    """One document for each method of the comparison, with the common solver filled in."""
    if needs := document.get("needs"):
        raise InputError(
            f"the setting needs what exists only in memory ({', '.join(needs) if isinstance(needs, list) else needs}): "
            "make it again in Python and call feddyn.simulate"
        )
    for key, value in document.items():
        if key not in (*TABLES, *SCALARS, "compare"):
            raise InputError(f"{key} is not known in a setting; {nearest(key, (*TABLES, *SCALARS, 'compare'))}")
        if key in TABLES and not isinstance(value, dict):
            raise InputError(f"{key} must be a table, not {value!r}")
    common = {key: value for key, value in copy.deepcopy(document).items() if key != "compare"}
    if "compare" not in document:
        return [_resolve(common, {}, "algorithm")]
    if "algorithm" in document:
        raise InputError("a setting has either an [algorithm] or [[compare]] entries, not both")
    entries = document["compare"]
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError("compare must be a list of tables: write [[compare]] above each method")
    singles = []
    for number, entry in enumerate(copy.deepcopy(entries), 1):
        if unknown := set(entry) - ENTRY:
            key = min(unknown)
            raise InputError(f"compare entry {number}: {key} is not known; {nearest(key, ENTRY)}")
        singles.append(_resolve(common, entry, f"compare entry {number}: algorithm"))
    slugs = [slug(name) for name, _ in singles]
    for name, short in zip((name for name, _ in singles), slugs, strict=True):
        if not short:
            raise InputError(f"compare: the label {name!r} has neither a letter nor a digit")
        if slugs.count(short) > 1:
            raise InputError(f"compare: two methods are called {name!r} or nearly so; give each a label of its own")
    return singles


def slug(label: str) -> str:
    """A label as the name of a directory.

    >>> slug("FedProx, mu = 0.1")
    'fedprox-mu-0.1'
    """
    return re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")


def _resolve(common: Document, entry: Document, where: str) -> tuple[str, Document]:
    """A method's own document: its algorithm, and its solver on top of the common one."""
    algorithm = entry.get("algorithm", common.get("algorithm", {}))
    if not isinstance(algorithm, dict) or not isinstance(entry.get("solver", {}), dict):
        raise InputError(f'{where} and solver must be tables, as in algorithm = {{ name = "feddyn", alpha = 0.1 }}')
    method = choose(METHODS, algorithm, "name", where)
    shared, own = dict(common.get("solver", {})), dict(entry.get("solver", {}))
    if method.solver is not None and shared.get("name", "sgd") != method.solver:
        shared = {"name": method.solver, **{key: shared[key] for key in method.inherits if key in shared}}
    if own.get("name", shared.get("name")) != shared.get("name"):
        shared = {}
    for one, other in EXCLUSIVE:
        if one in own:
            shared.pop(other, None)
    single = {**copy.deepcopy(common), "algorithm": dict(algorithm), "solver": {"name": "sgd", **shared, **own}}
    if method.pooled:
        single["population"] = {**single.get("population", {}), "pooled": True}
        single["participation"] = 1.0
    name = entry.get("label", label(algorithm["name"], algorithm))
    if not isinstance(name, str):
        raise InputError(f"compare: a label must be a text, not {name!r}")
    return name, single


def _change(singles: Sequence[Document], change: str) -> None:
    """Apply KEY=VALUE to every document that has the key; none has it: an error."""
    path, equals, text = change.partition("=")
    parts = path.strip().split(".")
    if not equals or len(parts) > 2 or not all(parts):
        raise InputError(f"--set {change}: write KEY=VALUE, as in --set solver.lr=0.05")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    known: set[str] = set()
    changed = False
    for single in singles:
        keys = _keys(single)
        known |= keys
        if ".".join(parts) in keys:
            target = single if len(parts) == 1 else single.setdefault(parts[0], {})
            target[parts[-1]] = value
            changed = True
    if not changed and any(".".join(parts) == f"solver.{one}" for one, _ in EXCLUSIVE):
        raise InputError(
            f"--set {change}: these methods go by {dict(EXCLUSIVE)[parts[1]]}; set that, or change the file"
        )
    if not changed:
        raise InputError(f"--set {change}: no method here has {'.'.join(parts)}; {nearest('.'.join(parts), known)}")


def _keys(single: Document) -> set[str]:
    """Every key that a single document may have, dotted."""
    made = {
        "algorithm": choose(METHODS, single["algorithm"], "name", "algorithm").algorithm,
        "solver": choose(SOLVERS, single["solver"], "name", "solver"),
        "population": choose(SOURCES, single.get("population", {}), "source", "population"),
        "model": choose(MODELS, single.get("model", {}), "name", "model"),
        "evaluation": Evaluation,
        "target": Target,
    }
    keys = {f"{table}.{key}" for table, make in made.items() for key in parameters(make)}
    keys -= {f"solver.{other}" for one, other in EXCLUSIVE if one in single["solver"]}
    names = {"algorithm.name", "solver.name", "model.name", "population.source"}
    return keys | names | set(SCALARS) | {"target.gap", "model.dtype", "population.pooled"}


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
    name = single["algorithm"]["name"]
    algorithm = build(METHODS[name].algorithm, _without(single["algorithm"], "name"), "algorithm", name)
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
    )


def _population(table: Document, seed: int) -> Population:
    source = choose(SOURCES, table, "source", "population")
    pooled = table.get("pooled", False)
    if not isinstance(pooled, bool):
        raise InputError(f"population.pooled must be true or false, not {pooled!r}")
    population = build(source, {"seed": seed, **_without(table, "source", "pooled")}, "population", table["source"])
    return population.pooled() if pooled else population


def _model(table: Document, population: Population, seed: int) -> tuple[nn.Module, Document]:
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


def _target(table: Document, model: nn.Module, population: Population, weight_decay: float) -> Target:
    """The target as given, or with `gap` the exact optimum of the training objective plus that gap."""
    if "gap" not in table:
        return build(Target, table, "target")
    gap = table["gap"]
    if not isinstance(gap, int | float) or isinstance(gap, bool) or not gap > 0:
        raise InputError(f"target.gap must be a number above 0, not {gap!r}")
    if "value" in table or table.get("metric", "objective") != "objective":
        raise InputError("target.gap is measured from the optimum of the objective: leave out target.value and metric")
    best = optimum(model, population, weight_decay)
    return build(Target, {**_without(table, "gap"), "metric": "objective", "value": best + gap}, "target")


def _without(table: Document, *keys: str) -> Document:
    return {key: value for key, value in table.items() if key not in keys}
