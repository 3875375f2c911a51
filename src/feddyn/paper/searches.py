"""The paper's hyperparameter searches as settings with a [sweep] table: of its synthetic table, and on MNIST and
Shakespeare with full participation.

The appendix gives the values that were searched. It does not say by what a setting was judged: here by the best figure
in so many rounds, which it gives for MNIST (100) only; for Shakespeare as many as its table counts to, 150.

Of the synthetic table the best setting of each method counts. The paper prints neither the number of rounds nor its
draw of the data, to which its loss targets belong.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from feddyn.data.datasets.synthetic import KINDS
from feddyn.data.stored import Stored
from feddyn.paper.appendix import Case, document
from feddyn.paper.catalogue import COLUMNS
from feddyn.paper.trials import Choice
from feddyn.runs.optimum import optimum
from feddyn.runs.simulation import Start
from feddyn.search.driver import Searching
from feddyn.search.space import Outcome, grid, read
from feddyn.settings.building import plans
from feddyn.settings.documents import Document

SYNTHETIC = {
    "solver": {"lr": [1.0, 0.1], "epochs": [1, 10, 50], "steps": [20, 200, 1000]},
    "algorithm": {"alpha": [0.1, 0.01, 0.001], "mu": [0.01, 0.0001]},
}
MNIST = {
    "solver": {"lr": [0.1, 0.01], "epochs": [10, 20, 50], "steps": [120, 240, 600]},
    "algorithm": {"mu": [1.0, 0.01, 0.0001], "alpha": [0.001, 0.01, 0.03, 0.1]},
}
SHAKESPEARE = {
    "solver": {"epochs": [1, 5], "steps": [20, 100]},
    "algorithm": {"mu": [0.01, 0.0001], "alpha": [0.001, 0.009, 0.01, 0.015]},
}


@dataclass(frozen=True)
class PaperSearch:
    """A table of the paper that is made of searches: a setting for every row."""

    name: str
    kind: str
    title: str
    documents: Mapping[str, Document]

    @property
    def candidates(self) -> list[Document]:
        """The settings that are tried, of all rows."""
        methods = (method for document in self.documents.values() for method in read(document)[1])
        return [candidate.document for method in methods for candidate in grid(method)]

    def rows(self, choice: Choice, out: Path) -> "list[SearchedRow]":
        """The rows that are wanted, with every seed."""
        choice.check(self.name, list(self.documents))
        return [
            SearchedRow(row, seed, setting, out / self.name / f"{row}-s{seed}")
            for seed in range(choice.seeds)
            for row, found in self.documents.items()
            if choice.row(row)
            for setting in [{**found, "seed": seed, "rounds": choice.rounds or found["rounds"]}]
        ]


@dataclass(frozen=True, eq=False)
class SearchedRow:
    """A row of such a table with a seed, and the directory of its search."""

    row: str
    seed: int
    document: Document
    directory: Path

    def searching(self, start: Start, batch: bool = True) -> Searching:
        """The search of this row, in its directory."""
        return Searching(self.document, self.directory, start, batch)

    def optimum(self) -> float:
        """The least value of the training objective, where the model is linear."""
        ((_, plan),) = plans(read(self.document)[1][0].first().document)
        assert isinstance(plan.population, Stored)
        return optimum(plan.model, plan.population, plan.local_solver.weight_decay)


def run(row: SearchedRow, start: Start, batch: bool) -> Generator[tuple[int, int, Outcome], None, None]:
    """Carry out a row's search, or what is left of it."""
    return row.searching(start, batch).outcomes()


@cache
def searches() -> Mapping[str, PaperSearch]:
    """The paper's searches by name."""
    digits = {
        "iid": Case("mnist", "iid", 1.0),
        "dirichlet0.6": Case("mnist", "dirichlet", 1.0, concentration=0.6),
        "dirichlet0.3": Case("mnist", "dirichlet", 1.0, concentration=0.3),
    }
    roles = {"iid": Case("shakespeare", "iid", 1.0), "natural": Case("shakespeare", "natural", 1.0)}
    found = (
        PaperSearch(
            "synthetic",
            "table",
            "the convex synthetic problem: 42 settings on four kinds of heterogeneity",
            {kind: _synthetic(kind) for kind in KINDS},
        ),
        PaperSearch(
            "mnist-search",
            "search",
            "the search of the MNIST hyperparameters, 100%, 100 rounds",
            {row: _search(case, MNIST, 100) for row, case in digits.items()},
        ),
        PaperSearch(
            "shakespeare-search",
            "search",
            "the search of the Shakespeare hyperparameters, 100%, 150 rounds",
            {row: _search(case, SHAKESPEARE, 150) for row, case in roles.items()},
        ),
    )
    return {search.name: search for search in found}


def _search(case: Case, space: Mapping[str, Any], rounds: int) -> Document:
    methods = [document(case, method) for method in COLUMNS]
    common = {key: value for key, value in methods[0].items() if key not in ("algorithm", "solver")}
    compare = [{"algorithm": single["algorithm"], "solver": single["solver"]} for single in methods]
    return {**common, "rounds": rounds, "compare": compare, "sweep": {"space": space}}


def _synthetic(kind: str) -> Document:
    """The search on a kind of data: 20 devices of about 200 samples, 10% active, batches of 10, weight decay 1e-5."""
    lengths = {method: "steps" if method == "scaffold" else "epochs" for method in COLUMNS}
    return {
        "rounds": 500,
        "participation": 0.1,
        "population": {"source": "synthetic", "kind": kind},
        "model": {"name": "linear"},
        "solver": {"batch_size": 10, "weight_decay": 1e-5},
        "evaluation": {"models": ["all"]},
        "compare": [{"algorithm": {"name": name}, "solver": {length: 1}} for name, length in lengths.items()],
        "sweep": {"space": SYNTHETIC},
    }
