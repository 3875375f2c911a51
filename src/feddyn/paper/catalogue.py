"""Every table and figure of the paper as named experiments: which runs they are made of, and what they should reach."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from feddyn.errors import InputError
from feddyn.paper import published
from feddyn.paper.appendix import Case, document
from feddyn.paper.centralised import REFERENCES
from feddyn.settings.documents import Document
from feddyn.settings.names import label

COLUMNS = ("feddyn", "scaffold", "fedavg", "fedprox")
"""The methods of the paper's tables, in the order of its columns."""
FIGURE_ALPHAS = (0.001, 0.01, 0.1, 1.0)
"""The values of alpha in the sensitivity figure: the range that the paper searched, and one beyond it. It does not say
what it drew."""


@dataclass(frozen=True)
class PaperRun:
    """A run of an experiment, for any seed: a method in a row, and the accuracies it should reach."""

    row: str
    method: str
    stem: str
    document: Document
    targets: tuple[float, ...] = ()
    case: Case | None = None

    @property
    def label(self) -> str:
        """What tables and plots call the run."""
        algorithm = self.document["algorithm"]
        words = label(algorithm["name"], algorithm)
        return f"{words}, alpha {algorithm['alpha']:g}" if "-alpha-" in self.method else words

    def setting(self, seed: int) -> Document:
        """The whole setting of the run with a seed."""
        return {"seed": seed, **self.document}

    def directory(self, seed: int) -> str:
        """The name of the run's record, the same in every experiment that has this run."""
        unique = hashlib.sha256(json.dumps(self.setting(seed), sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.stem}-{self.document['algorithm']['name']}-s{seed}-{unique}"


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its runs, and for a table the rows that the paper prints."""

    name: str
    kind: Literal["table", "figure", "comparison"]
    title: str
    jobs: Sequence[PaperRun]
    printed: Mapping[tuple[str, float], published.Row]

    @property
    def rows(self) -> list[str]:
        """The names of the experiment's rows, in order."""
        return list(dict.fromkeys(job.row for job in self.jobs))


def case(row: published.Row) -> Case:
    """The federation of a row that the paper prints."""
    split, concentration = row.split.lower(), None
    if found := re.fullmatch(r"dirichlet \((.*)\)", split):
        split, concentration = "dirichlet", float(found[1])
    massive = {"cifar10": 1000, "cifar100": 500}[row.dataset] if row.group == "Massive" else 100
    share = re.fullmatch(r"(\d+)%", row.group)
    return Case(
        row.dataset,
        "natural" if split == "non-iid" else split,
        float(share[1]) / 100 if share else 0.1,
        massive,
        concentration,
        row.group == "Unbalanced",
    )


def row_name(row: published.Row) -> str:
    """What a row is called on the command line; both targets of a federation are one row.

    >>> row_name(published.rows("participation")[-1])
    'shakespeare-natural-10'
    """
    which = case(row)
    concentration = "" if which.concentration is None else f"{which.concentration:g}"
    return f"{row.dataset}-{which.split}{concentration}-{row.group.lower().removesuffix('%')}"


def _table(name: str, title: str) -> Experiment:
    printed = {(row_name(row), row.target): row for row in published.rows(name)}
    cases = {row_name(row): case(row) for row in printed.values()}
    jobs = [
        PaperRun(
            row,
            method,
            str(which),
            document(which, method),
            tuple(round(t / 100, 6) for other, t in printed if other == row),
            which,
        )
        for row, which in cases.items()
        for method in COLUMNS
    ]
    return Experiment(name, "table", title, jobs, printed)


def _with(job: PaperRun, row: str, method: str, **tables: Document) -> PaperRun:
    """The same run but for some tables' keys; it has no targets in the paper."""
    changed = {**job.document, **{name: {**job.document[name], **table} for name, table in tables.items()}}
    return PaperRun(row, method, job.stem, changed, case=job.case)


def _job(row: str, method: str, which: Case) -> PaperRun:
    return PaperRun(row, method, str(which), document(which, method), case=which)


def _figures() -> Iterator[Experiment]:
    iid = Case("cifar10", "iid", 0.1)
    alphas = [
        _with(_job("cifar10-iid-10", "feddyn", iid), "cifar10-iid-10", f"feddyn-alpha-{a:g}", algorithm={"alpha": a})
        for a in FIGURE_ALPHAS
    ]
    yield Experiment("alpha", "figure", "sensitivity to alpha, CIFAR-10, IID, 100 devices, 10%", alphas, {})
    full = Case("cifar10", "iid", 1.0)
    split = [_job("cifar10-iid-100", "feddyn", full), _job("cifar10-iid-100", "fedsplit", full)]
    split += [_job("cifar10-iid-10", "feddyn", iid), _job("cifar10-iid-10", "fedsplit", iid)]
    split.append(_with(split[-1], "cifar10-iid-10", "fedsplit-all", algorithm={"mean": "all"}))
    yield Experiment("fedsplit", "figure", "FedSplit Act and All and FedDyn, CIFAR-10, 100% and 10%", split, {})
    big = [
        _with(_job("cifar10-iid-10", method, iid), "cifar10-iid-10", method, model={"name": "resnet18"})
        for method in COLUMNS
    ]
    yield Experiment("resnet18", "figure", "ResNet-18 with GroupNorm, CIFAR-10, IID, 100 devices, 10%", big, {})


def _comparisons() -> Iterator[Experiment]:
    """What the paper mentions without a table."""
    splits = {
        "mnist-iid-10": Case("mnist", "iid", 0.1),
        "mnist-dirichlet0.3-10": Case("mnist", "dirichlet", 0.1, 100, 0.3),
    }
    jobs = [
        replace(_job(row, method, which), targets=(0.982, 0.972))
        for row, which in splits.items()
        for method in ("feddyn", "fedavg", "distributed-sgd")
    ]
    yield Experiment("distributed-sgd", "comparison", "distributed SGD beside FedDyn and FedAvg, MNIST, 10%", jobs, {})
    jobs = [
        replace(_job(row, method, which), targets=(0.972, 0.95, 0.9))
        for row, which in splits.items()
        for method in ("feddyn", "feddyn-onegd")
    ]
    yield Experiment(
        "one-gradient", "comparison", "FedDynOneGD and FedDyn in rounds and gradients, MNIST, 10%", jobs, {}
    )
    jobs = [PaperRun(name, "centralised", name, reference.document()) for name, reference in REFERENCES.items()]
    yield Experiment("centralised", "table", "the data sets and their centralised accuracies", jobs, {})


@cache
def experiments() -> Mapping[str, Experiment]:
    """The experiments that are made of federated runs, by name."""
    tables = (
        _table("devices", "moderate and massive number of devices, 10% participation"),
        _table("participation", "100% and 10% participation, 100 devices"),
        _table("participation-1pct", "1% participation, 100 devices"),
        _table("unbalanced", "balanced and unbalanced data, 100 devices, 10% participation"),
    )
    return {experiment.name: experiment for experiment in (*tables, *_figures(), *_comparisons())}


def as_setting(jobs: Sequence[PaperRun]) -> Document:
    """The runs of one row as a comparison: what all methods share, and an entry for each."""
    if len({job.row for job in jobs}) != 1:
        raise InputError("--toml prints one row: choose it with --row")
    first, own = jobs[0], ("algorithm", "solver")
    common = {key: value for key, value in first.document.items() if key not in own}
    if first.targets:
        common["target"] = {"metric": "accuracy", "value": max(first.targets)}
    solvers = [job.document["solver"] for job in jobs]
    shared = {k: v for k, v in solvers[0].items() if all(solver.get(k) == v for solver in solvers)}
    if len({solver.get("name") for solver in solvers}) > 1:
        shared = {}  # methods with solvers of their own do not take from a common one
    compare = []
    for job in jobs:
        solver = {k: v for k, v in job.document["solver"].items() if k not in shared}
        compare.append({"label": job.label, "algorithm": job.document["algorithm"], "solver": solver})
    return {**common, **({"solver": shared} if shared else {}), "compare": compare}
