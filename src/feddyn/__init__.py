"""Federated learning by dynamic regularization (FedDyn, Acar et al., ICLR 2021), exact, with its baselines.

Names are imported when they are first used, so that the command line answers before PyTorch is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feddyn.algorithms import Algorithm, FedAvg, FedDyn, FedProx, FedSplit, Problem, Scaffold, Solution
    from feddyn.data.datasets.synthetic import synthetic
    from feddyn.data.population import Population
    from feddyn.engine.links import Links
    from feddyn.errors import DivergenceError, FeddynError, InputError
    from feddyn.metrics import Evaluation, Metric, Target
    from feddyn.models.flat import FlatModel
    from feddyn.records.reader import RunRecord, load
    from feddyn.runs.plan import Plan
    from feddyn.runs.run import Run, Simulation, simulate
    from feddyn.runs.saving import Every
    from feddyn.solvers import SGD, Exact, OneStep, Solver, Work
    from feddyn.theory.suggest import suggest_alpha

_HOMES = {
    "feddyn.algorithms": (
        "Algorithm",
        "FedAvg",
        "FedDyn",
        "FedProx",
        "FedSplit",
        "Problem",
        "Scaffold",
        "Solution",
    ),
    "feddyn.data.population": ("Population",),
    "feddyn.data.datasets.synthetic": ("synthetic",),
    "feddyn.errors": ("DivergenceError", "FeddynError", "InputError"),
    "feddyn.solvers": ("SGD", "Exact", "OneStep", "Solver", "Work"),
    "feddyn.models.flat": ("FlatModel",),
    "feddyn.records.reader": ("RunRecord", "load"),
    "feddyn.metrics": ("Evaluation", "Metric", "Target"),
    "feddyn.engine.links": ("Links",),
    "feddyn.runs.plan": ("Plan",),
    "feddyn.runs.run": ("Run", "Simulation", "simulate"),
    "feddyn.runs.saving": ("Every",),
    "feddyn.theory.suggest": ("suggest_alpha",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SGD",
    "Algorithm",
    "DivergenceError",
    "Evaluation",
    "Every",
    "Exact",
    "FedAvg",
    "FedDyn",
    "FedProx",
    "FedSplit",
    "FeddynError",
    "FlatModel",
    "InputError",
    "Links",
    "Metric",
    "OneStep",
    "Plan",
    "Population",
    "Problem",
    "Run",
    "RunRecord",
    "Scaffold",
    "Simulation",
    "Solution",
    "Solver",
    "Target",
    "Work",
    "load",
    "simulate",
    "suggest_alpha",
    "synthetic",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'feddyn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
