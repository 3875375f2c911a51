"""Settings to plans: the objects that a document asks for. docs/settings.md describes the schema."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from feddyn.data.on_demand import OnDemand
from feddyn.data.stored import Stored
from feddyn.errors import InputError
from feddyn.metrics import Target
from feddyn.models.flat import Loss
from feddyn.models.losses import binary
from feddyn.round.seeds import integer
from feddyn.runs.optimum import optimum
from feddyn.runs.plan import Plan
from feddyn.settings.checking import DTYPES, Draft, draft
from feddyn.settings.code import is_own, portable
from feddyn.settings.documents import Document, change, expand
from feddyn.settings.names import label
from feddyn.settings.schema import build, parameters
from feddyn.settings.torch_device import device, require_device
from feddyn.solvers.own import as_solver

T = TypeVar("T")


class Named(NamedTuple):
    """A plan and what to call it."""

    label: str
    plan: Plan


def plans(
    document: Document,
    changes: Sequence[str] = (),
    seed: int | None = None,
    shared: dict[str, Any] | None = None,
    folder: Path = Path(),
    fetch: Callable[[str], None] | None = None,
) -> list[Named]:
    """The runs that a settings document asks for, after `--set` changes; one without a comparison has one run.

    `shared` keeps what takes long to make (populations, optima) for other settings. Code of one's own is looked for in
    `folder`. `fetch` is called with the name of each source when all is checked and before any data is read.
    """
    singles = expand(document)
    for _, single in singles:
        if seed is not None:
            single["seed"] = seed
            single.get("population", {}).pop("seed", None)  # it follows the run's seed
    for words in changes:
        change([single for _, single in singles], words, folder)
    if "compare" not in document:  # it is called by its method, which may be another one now
        singles = [(label(single["algorithm"]["name"], single["algorithm"]), single) for _, single in singles]
    shared = {} if shared is None else shared

    def each(make: Callable[[T], Any], items: Sequence[tuple[str, T]]) -> list[tuple[str, Any]]:
        found, refused = [], {}
        for name, item in items:
            try:
                found.append((name, make(item)))
            except InputError as error:
                refused[name] = str(error)
        if refused:
            raise InputError(blame(refused, len(items)))
        return found

    drafts = each(lambda single: draft(single, folder), singles)
    each(lambda found: require_device(device(found.single.get("device", "cpu"))), drafts)
    if fetch is not None:
        for source in dict.fromkeys(single["population"]["source"] for _, single in singles):
            fetch(source)
    return [Named(name, plan) for name, plan in each(lambda found: _plan(found, shared), drafts)]


def blame(refused: Mapping[str, str], methods: int) -> str:
    """The first of the sentences that were said of some methods; it names its method where it is the only one of
    several that it was said of: what is wrong with more is wrong with what they share."""
    name, sentence = next(iter(refused.items()))
    alone = methods > 1 and list(refused.values()).count(sentence) == 1
    return f"{name}: {sentence}" if alone else sentence


def _plan(found: Draft, shared: dict[str, Any]) -> Plan:
    """Objects for a checked setting; `shared` keeps what takes long to make for the next method of a comparison."""

    def once(make: Callable[..., T], *arguments: Any, key: object) -> T:
        name = f"{make.__name__} {key}"
        if name not in shared:
            try:
                shared[name] = make(*arguments)
            except InputError as error:
                shared[name] = error
        if isinstance(shared[name], InputError):
            raise shared[name]
        made: T = shared[name]
        return made

    single, source = found.single, found.single.get("population", {})
    population = once(_population, found, key=(source, found.seed))
    model, origin = _model(found, population)
    target, decay = found.target, as_solver(found.solver).weight_decay
    if target is not None and "gap" in single["target"]:
        target = once(_above_optimum, found, model, population, decay, key=(single["target"], source, origin, decay))
    return Plan(
        model.to(device(single.get("device", "cpu"))),
        population,
        found.algorithm,
        found.solver,
        single["participation"],
        single["rounds"],
        found.seed,
        found.loss,
        evaluation=found.evaluation,
        target=target,
        origin=origin,
        stack=single.get("stack", single.get("cohort")),
        links=found.links,
        uplink=found.uplink,
        downlink=found.downlink,
        patience=found.patience,
        named=found.named,
        code=found.code.files,
    )


def _population(found: Draft) -> Stored | OnDemand:
    table = found.single["population"]
    name, given = table["source"], found.population_table
    for key, place in given.items():
        if isinstance(place, Path) and not is_own(name) and not place.exists():
            raise InputError(f"population.{key}: there is no file {table[key]} in {found.code.places()}")
    population = build(found.source, given, "population", name)
    if not isinstance(population, Stored | OnDemand):
        raise InputError(f"population.source: {name} gives a {type(population).__name__}, which is no Population")
    if is_own(name):
        plain = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
        population = replace(population, origin={"source": portable(name), **plain})
    if not table.get("pooled", False):
        return population
    if not isinstance(population, Stored):
        raise InputError("population.pooled: devices whose data is made on demand cannot be pooled")
    return population.pooled()


def _model(found: Draft, population: Stored | OnDemand) -> tuple[nn.Module, Document]:
    """The initial model and how to make it again; sizes that are not given follow from the data."""
    table = found.single["model"]
    name, dtype = table["name"], table.get("dtype", "float32")
    known = parameters(found.network)
    sizes = _sizes(population, found.loss)
    given = {**{size: value for size, value in sizes.items() if size in known}, **found.model_table}
    return network(found, given), {"name": portable(name) if is_own(name) else name, "dtype": dtype, **given}


def network(found: Draft, given: Document) -> nn.Module:
    """A setting's initial model, which follows from the seed, made of all its parameters."""
    name, dtype = found.single["model"]["name"], found.single["model"].get("dtype", "float32")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(integer(found.seed, "model"))
        model = build(found.network, given, "model", name)
    if not isinstance(model, nn.Module):
        raise InputError(f"model.name: {name} gives a {type(model).__name__}, which is no torch.nn.Module")
    return model.to(DTYPES[dtype])


def _sizes(population: Stored | OnDemand, loss: Loss) -> Document:
    """The numbers in a sample, and the classes or, for regression and labels of 0 and 1, numbers in a target."""
    x, _ = population.excerpt()
    y = population.y if isinstance(population, Stored) else population.test[1]
    sizes = {"features": math.prod(x.shape[1:])} if isinstance(x, torch.Tensor) else {}
    if loss is binary:
        sizes["classes"] = math.prod(y.shape[1:])
    elif not y.is_floating_point():
        tested = population.test[1] if population.test else y
        sizes["classes"] = int(max(y.max(), tested.max())) + 1  # a rare one may be in the test alone
    elif y.dim() == 2:
        sizes["classes"] = y.shape[1]
    return sizes


def _above_optimum(found: Draft, model: nn.Module, population: Stored | OnDemand, weight_decay: float) -> Target:
    """The exact optimum of the training objective plus a gap."""
    if not isinstance(population, Stored):
        raise InputError("target.gap: the optimum of data that is made on demand is not known, give target.value")
    assert found.target is not None
    value = optimum(model, population, weight_decay) + found.single["target"]["gap"]
    return replace(found.target, value=float(f"{value:.12g}"))  # the same on every processor
