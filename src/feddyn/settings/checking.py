"""All of a setting that can be checked without its data, so that no mistake costs a download."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from feddyn.algorithms import Algorithm
from feddyn.checks import require_whole
from feddyn.data.population import Population
from feddyn.engine.links import Links
from feddyn.errors import InputError, nearest
from feddyn.identity import evaluation_table
from feddyn.metrics import Evaluation, Metric, Patience, Target, top
from feddyn.models.flat import Loss
from feddyn.round.participation import require_participation
from feddyn.runs.plan import require_fitting
from feddyn.settings.code import Code, is_own, portable
from feddyn.settings.documents import Document
from feddyn.settings.names import ALGORITHMS, COMPRESSORS, LOSSES, MODELS, SCHEDULES, SOLVERS, SOURCES
from feddyn.settings.schema import build, check, choose, parameters, takes
from feddyn.settings.torch_device import device
from feddyn.solvers import Schedule
from feddyn.solvers.base import Solve
from feddyn.solvers.own import as_solver
from feddyn.wire import Compressor

T = TypeVar("T")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
SIZES = ("features", "classes")
"""Parameters of a model that follow from the data where they are not given."""


@dataclass(frozen=True)
class Draft:
    """A single setting, checked: its parts that need no data, and what makes the others.

    `named` has the tables of parts that are code of one's own.
    """

    single: Document
    seed: int
    source: Callable[..., Population]
    network: Callable[..., nn.Module]
    algorithm: Algorithm
    solver: Solve
    loss: Loss
    evaluation: Evaluation
    target: Target | None
    links: Links | None
    uplink: Compressor | None
    downlink: Compressor | None
    patience: Patience | None
    code: Code
    named: Document

    @property
    def population_table(self) -> Document:
        """The parameters of the population; paths are seen from the setting's folder."""
        table = without(self.single.get("population", {}), "source", "pooled")
        files = [name for name, parameter in parameters(self.source).items() if parameter.annotation is Path]
        table |= {name: self.code.located(table[name]) for name in files if isinstance(table.get(name), str)}
        return {"seed": self.seed, **table} if takes(self.source, "seed") else table

    @property
    def model_table(self) -> Document:
        """The parameters of the model, without those that follow from the data."""
        return without(self.single.get("model", {}), "name", "dtype")


def draft(single: Document, folder: Path = Path()) -> Draft:
    """Check a single setting; code of one's own is looked for in `folder`."""
    for key in ("rounds", "participation"):
        if key not in single:
            raise InputError(f"{key} is missing from the setting")
    seed = single.get("seed", 0)
    require_whole("", "rounds", single["rounds"], 1)
    require_whole("", "seed", seed, 0)
    for key in ("stack", "cohort"):
        if key in single:
            require_whole("", key, single[key], 1)
    device(single.get("device", "cpu"))
    require_participation(single["participation"], single["rounds"])
    code, model, population = Code(folder), single.get("model", {}), single.get("population", {})
    named: Document = {}

    def part(kind: str, known: Mapping[str, Callable[..., T]], fits: Callable[[object], bool]) -> T:
        table = single[kind]
        if kind == "solver" and not is_own(table.get("name")) and "schedule" in table:
            table = {**table, "schedule": _schedule(table["schedule"], code)}
        made = build(code.choose(known, table, "name", kind), without(table, "name"), kind, table["name"])
        if not fits(made):
            raise InputError(f"{kind}.name: {table['name']} gives a {type(made).__name__}, which is no {kind}")
        if is_own(table["name"]):
            named[kind] = {**table, "name": portable(table["name"])}
        elif isinstance(schedule := single[kind].get("schedule"), dict) and is_own(schedule["name"]):
            named[kind] = {**single[kind], "schedule": {**schedule, "name": portable(schedule["name"])}}
        return made

    algorithm = part("algorithm", ALGORITHMS, lambda made: isinstance(made, Algorithm))
    solver = part("solver", SOLVERS, lambda made: callable(made) and not isinstance(made, type))
    evaluation, metrics = _evaluation(single.get("evaluation", {}), code)
    if metrics:
        named["evaluation"] = {**evaluation_table(evaluation), "metrics": metrics}
    links = build(Links, single["links"], "links") if "links" in single else None
    target = _target(single["target"]) if "target" in single else None
    patience = build(Patience, single["patience"], "patience") if "patience" in single else None
    require_fitting(as_solver(solver), evaluation, target, links, patience)
    loss = LOSSES["cross-entropy"]
    if single.get("loss", "cross-entropy") != "cross-entropy":
        loss, named["loss"] = _loss(single["loss"], code)
    found = Draft(
        single=single,
        seed=seed,
        source=code.choose(SOURCES, population, "source", "population"),
        network=code.choose(MODELS, model, "name", "model"),
        algorithm=algorithm,
        solver=solver,
        loss=loss,
        evaluation=evaluation,
        target=target,
        links=links,
        uplink=_compressor(single, "uplink", code, named),
        downlink=_compressor(single, "downlink", code, named),
        patience=patience,
        code=code,
        named=named,
    )
    if not isinstance(pooled := population.get("pooled", False), bool):
        raise InputError(f"population.pooled must be true or false, not {pooled!r}")
    check(found.source, found.population_table, "population", population["source"])
    choose(DTYPES, {"dtype": "float32", **model}, "dtype", "model")
    check(found.network, found.model_table, "model", model["name"], later=SIZES)
    if "gap" in single.get("target", {}) and loss is not LOSSES["cross-entropy"]:
        raise InputError("target.gap is measured from the optimum of cross-entropy: leave it, or loss, out")
    code.require(single.get("code", {}))
    if code.files:
        named["code"] = code.hashes
    return found


def without(table: Document, *keys: str) -> Document:
    """A table without some keys."""
    return {key: value for key, value in table.items() if key not in keys}


def _schedule(table: object, code: Code) -> Schedule:
    where = "solver.schedule"
    if not isinstance(table, dict):
        raise InputError(
            f'{where} must be a table, as in schedule = {{ name = "cosine", rounds = 200 }}, not {table!r}'
        )
    made = build(code.choose(SCHEDULES, table, "name", where), without(table, "name"), where, table["name"])
    if not isinstance(made, Schedule):
        raise InputError(f"{where}.name: {table['name']} gives a {type(made).__name__}, which is no Schedule")
    return made


def _target(table: Document) -> Target:
    """The target, with a value of 0 where it is measured from an optimum that nobody knows yet."""
    if "gap" not in table:
        return build(Target, table, "target")
    gap = table["gap"]
    if not isinstance(gap, int | float) or isinstance(gap, bool) or not gap > 0:
        raise InputError(f"target.gap must be a number above 0, not {gap!r}")
    if "value" in table or table.get("metric", "objective") != "objective":
        raise InputError("target.gap is measured from the optimum of the objective: leave out target.value and metric")
    return build(Target, {**without(table, "gap"), "metric": "objective", "value": 0.0}, "target")


def _evaluation(table: Document, code: Code) -> tuple[Evaluation, list[Document]]:
    """How models are evaluated, and the metrics of one's own for the record: their names, directions and sources."""
    found, listed = [], []
    if not isinstance(entries := table.get("metrics", []), list):
        raise InputError(f"evaluation.metrics must be a list of names, not {entries!r}")
    for entry in entries:
        source = entry.get("source") if isinstance(entry, dict) else entry
        metric = _metric(source, code)
        found.append(metric)
        kept = portable(source) if is_own(source) else source
        listed.append({"name": metric.name, "better": metric.better, "source": kept})
    rest = build(Evaluation, without(table, "metrics"), "evaluation")
    return replace(rest, metrics=tuple(found)), listed


def _compressor(single: Document, kind: str, code: Code, named: Document) -> Compressor | None:
    """How uploads or downloads are compressed; the name `none`, for a method of a comparison, is not at all, and for
    the values of another compressor, as they are."""

    def made(table: Document, where: str) -> Compressor | None:
        if table.get("name") == "none":
            if rest := without(table, "name"):
                raise InputError(f"{where}.{min(rest)} is not known for {where} 'none', which has no parameters")
            return None
        inner = {key: made(v, f"{where}.{key}") if isinstance(v, dict) else v for key, v in table.items()}
        make = code.choose(COMPRESSORS, table, "name", where)
        try:
            found = build(make, without(inner, "name"), where, table["name"])
        except InputError as error:  # which names the class; who wrote the setting knows the key
            raise InputError(re.sub(r"^[A-Z]\w*: ", f"{where}.", str(error))) from None
        if not isinstance(found, Compressor):
            raise InputError(f"{where}.name: {table['name']} gives a {type(found).__name__}, which is no Compressor")
        if is_own(table["name"]):
            named[kind] = _portable(single[kind])
        return found

    return made(single.get(kind, {"name": "none"}), kind)


def _portable(table: Document) -> Document:
    """A table in which names of one's own are without paths, also in the tables inside."""
    return {
        key: _portable(v) if isinstance(v, dict) else portable(v) if key == "name" and is_own(v) else v
        for key, v in table.items()
    }


def _metric(source: object, code: Code) -> Metric:
    """A metric by its name: `top5`, or one's own, or a function that makes one."""
    where = "evaluation.metrics"
    if isinstance(source, str) and (known := re.fullmatch(r"top([1-9]\d{0,5})", source)):
        return top(int(known[1]))
    if not is_own(source):
        raise InputError(f'{where} {source!r} is not known: write "top5" or another number, or "file.py:Name"')
    made = code.resolve(source, where, kinds=(Metric,))
    if not isinstance(made, Metric):
        made = build(made, {}, where, source)
    if not isinstance(made, Metric):
        raise InputError(f"{where}: {source} gives a {type(made).__name__}, which is no Metric")
    return made


def _loss(name: object, code: Code) -> tuple[Loss, str]:
    """A loss, and its name for the record; a class such as torch.nn:HuberLoss is made without parameters."""
    if isinstance(name, str) and name in LOSSES:
        return LOSSES[name], name
    if not is_own(name):
        raise InputError(f'loss {name!r} is not known; {nearest(str(name), LOSSES)} or write "file.py:Name"')
    found = code.resolve(name, "loss")
    return build(found, {}, "loss", name) if isinstance(found, type) else found, portable(name)
