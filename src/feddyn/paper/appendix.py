"""The hyperparameters that the paper's appendix selects, with ours where it is silent: appendix.toml, as settings."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from feddyn.settings.documents import Document
from feddyn.settings.names import METHODS

MODELS: Mapping[str, Mapping[str, Any]] = {
    "mnist": {"name": "mlp"},
    "emnist-l": {"name": "mlp", "hidden": 100},
    "cifar10": {"name": "cnn"},
    "cifar100": {"name": "cnn"},
    "shakespeare": {"name": "lstm"},
}
EVALUATED = {"mlp": ["server", "active", "all"]}
"""Which models are evaluated every round; where a network takes long for it, only what the paper reports: `all`."""
SIGMA = 0.3
"""Standard deviation of the logarithms of the devices' sizes where data is unbalanced."""


@dataclass(frozen=True)
class Case:
    """A federation of the paper: what the appendix's choices depend on, besides the method."""

    dataset: str
    split: str
    participation: float
    devices: int = 100
    concentration: float | None = None
    unbalanced: bool = False

    def population(self) -> Document:
        """The [population] table of a setting: who holds which data."""
        split = self.split
        if self.dataset == "cifar100" and split == "iid" and not self.unbalanced:
            split = "class-exact"  # the authors' IID split of CIFAR-100 has as many of each class on every device
        table: Document = {"source": self.dataset, "devices": self.devices, "split": split}
        if self.concentration is not None:
            table["concentration"] = self.concentration
        return {**table, "sigma": SIGMA} if self.unbalanced else table

    def __str__(self) -> str:
        """A short name of the federation.

        >>> str(Case("mnist", "dirichlet", 0.1, concentration=0.3))
        'mnist-dirichlet0.3-100x0.1'
        """
        concentration = "" if self.concentration is None else f"{self.concentration:g}"
        sizes = "-unbalanced" if self.unbalanced else ""
        return f"{self.dataset}-{self.split}{concentration}{sizes}-{self.devices}x{self.participation:g}"


class Rule(NamedTuple):
    """A rule of appendix.toml; see there."""

    when: Mapping[str, Any]
    says: str
    rounds: int | None
    solver: Mapping[str, Any]
    algorithm: Mapping[str, Any]
    range: Mapping[str, Any]

    def fits(self, facts: Mapping[str, Any]) -> bool:
        """Whether the rule is meant for a case and method."""
        wanted = {key: value if isinstance(value, list) else [value] for key, value in self.when.items()}
        return all(facts[key] in values for key, values in wanted.items())


@cache
def rules() -> tuple[Rule, ...]:
    """All rules of appendix.toml, in order."""
    tables = tomllib.loads((Path(__file__).parent / "appendix.toml").read_text(encoding="utf-8"))["rule"]
    empty: Mapping[str, Any] = {"when": {}, "rounds": None, "solver": {}, "algorithm": {}, "range": {}}
    return tuple(Rule(**{**empty, **table}) for table in tables)


class Origin(NamedTuple):
    """A hyperparameter, where it comes from, and the range that the paper searched, if it does not say what it took."""

    key: str
    value: Any
    says: str
    range: Any


def origins(case: Case, method: str) -> list[Origin]:
    """The hyperparameters of an experiment."""
    found: dict[str, Origin] = {}
    for rule in _fitting(case, method):
        if rule.rounds is not None:
            found["rounds"] = Origin("rounds", rule.rounds, rule.says, None)
        for table, values in (("solver", rule.solver), ("algorithm", rule.algorithm)):
            for key, value in values.items():
                found[f"{table}.{key}"] = Origin(f"{table}.{key}", value, rule.says, rule.range.get(key))
    return list(found.values())


def document(case: Case, method: str) -> Document:
    """The setting of a method in a case, without a seed."""
    chosen: Document = {"solver": {}, "algorithm": {"name": method}}
    for key, value, _, _ in origins(case, method):
        table, _, name = key.rpartition(".")
        (chosen[table] if table else chosen)[name] = value
    model, preset = dict(MODELS[case.dataset]), METHODS[method]
    solver = {key: value for key, value in chosen["solver"].items() if not preset.solver or key in preset.inherits}
    return {
        "rounds": chosen["rounds"],
        "participation": case.participation,
        "population": case.population(),
        "model": model,
        "algorithm": chosen["algorithm"],
        "solver": {"name": preset.solver or "sgd", **solver},
        "evaluation": {"models": EVALUATED.get(model["name"], ["all"])},
    }


def _fitting(case: Case, method: str) -> Iterator[Rule]:
    facts = {**asdict(case), "method": method}
    return (rule for rule in rules() if rule.fits(facts))
