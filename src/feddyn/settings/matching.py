"""Whether a record is of the run that a setting asks for, told by what the two settings say."""

from collections.abc import Callable, Mapping
from typing import Any

from feddyn.metrics import Evaluation
from feddyn.settings.documents import Document, expand
from feddyn.settings.names import METHODS, MODELS, SOLVERS, SOURCES
from feddyn.settings.schema import parameters

DERIVED = ("features", "classes", "augment", "seed")
"""Keys that follow from the data or from the rest of a setting where they are not given."""


def is_run_of(record: Mapping[str, Any], document: Document) -> bool:
    """Whether a record's complete setting is that of a document without a comparison: what the document gives is the
    same there, and what it leaves out has its default."""
    plain = {name: value for name, value in document.items() if not isinstance(value, Mapping)}
    if any(record.get(name) != value for name, value in plain.items()):
        return False  # most are not: they need no closer look
    ((_, single),) = expand(document)
    method, solver = METHODS[single["algorithm"]["name"]].algorithm, SOLVERS[single["solver"]["name"]]
    single["algorithm"] = {**single["algorithm"], "name": method.__name__.lower()}
    makers: dict[str, Callable[..., object]] = {"algorithm": method, "solver": solver, "evaluation": Evaluation}
    makers |= {"population": SOURCES[single["population"]["source"]], "model": MODELS[single["model"]["name"]]}
    scalars = {name: value for name, value in single.items() if name not in makers}
    return (
        set(record) - {"stack", "cohort"} == set(single) - {"stack"}
        and all(record[name] == value for name, value in scalars.items())
        and all(_same(record[name], single[name], make) for name, make in makers.items())
    )


def _same(complete: object, given: Mapping[str, Any], make: Callable[..., object]) -> bool:
    if not isinstance(complete, Mapping) or not given.items() <= complete.items():
        return False
    defaults = {"dtype": "float32"} | {name: parameter.default for name, parameter in parameters(make).items()}
    rest = {name: value for name, value in complete.items() if name not in given and name not in DERIVED}
    return all(name in defaults and defaults[name] in (value, _tuple(value)) for name, value in rest.items())


def _tuple(value: object) -> object:
    """TOML has lists only."""
    return tuple(value) if isinstance(value, list) else value
