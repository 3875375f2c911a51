"""The paper's hyperparameter searches on MNIST and Shakespeare, full participation, as settings with a [sweep] table.

The appendix gives the values that were searched and, for MNIST, the 100 rounds; it does not say by what a setting was
judged: here by the best accuracy in these rounds. For Shakespeare it gives no number of rounds; here as many as its
table counts to, 150.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from feddyn.paper.appendix import Case, document
from feddyn.paper.catalogue import COLUMNS
from feddyn.settings.documents import Document

MNIST = {
    "solver": {"lr": [0.1, 0.01], "epochs": [10, 20, 50], "steps": [120, 240, 600]},
    "algorithm": {"mu": [1.0, 0.01, 0.0001], "alpha": [0.001, 0.01, 0.03, 0.1]},
}
SHAKESPEARE = {
    "solver": {"epochs": [1, 5], "steps": [20, 100]},
    "algorithm": {"mu": [0.01, 0.0001], "alpha": [0.001, 0.009, 0.01, 0.015]},
}


@cache
def searches() -> Mapping[str, Mapping[str, Document]]:
    """The paper's searches by name, each with a setting for every row."""
    digits = {
        "iid": Case("mnist", "iid", 1.0),
        "dirichlet0.6": Case("mnist", "dirichlet", 1.0, concentration=0.6),
        "dirichlet0.3": Case("mnist", "dirichlet", 1.0, concentration=0.3),
    }
    roles = {"iid": Case("shakespeare", "iid", 1.0), "natural": Case("shakespeare", "natural", 1.0)}
    return {
        "mnist-search": {row: _search(case, MNIST, 100) for row, case in digits.items()},
        "shakespeare-search": {row: _search(case, SHAKESPEARE, 150) for row, case in roles.items()},
    }


def _search(case: Case, space: Mapping[str, Any], rounds: int) -> Document:
    methods = [document(case, method) for method in COLUMNS]
    common = {key: value for key, value in methods[0].items() if key not in ("algorithm", "solver")}
    compare = [{"algorithm": single["algorithm"], "solver": single["solver"]} for single in methods]
    return {**common, "rounds": rounds, "compare": compare, "sweep": {"space": space}}
