"""Federated learning by dynamic regularization (FedDyn, Acar et al., ICLR 2021), exact, with its baselines.

Names are imported when they are first used, so that the command line answers before PyTorch is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same again for type checkers, which cannot follow __getattr__
    from feddyn.algorithms import AdaBest as AdaBest
    from feddyn.algorithms import Algorithm as Algorithm
    from feddyn.algorithms import FedACG as FedACG
    from feddyn.algorithms import FedAdam as FedAdam
    from feddyn.algorithms import FedAvg as FedAvg
    from feddyn.algorithms import FedAvgM as FedAvgM
    from feddyn.algorithms import FedDC as FedDC
    from feddyn.algorithms import FedDR as FedDR
    from feddyn.algorithms import FedDyn as FedDyn
    from feddyn.algorithms import FedDynM as FedDynM
    from feddyn.algorithms import FedProx as FedProx
    from feddyn.algorithms import FedSplit as FedSplit
    from feddyn.algorithms import FedYogi as FedYogi
    from feddyn.algorithms import Problem as Problem
    from feddyn.algorithms import Scaffold as Scaffold
    from feddyn.algorithms import Solution as Solution
    from feddyn.data.datasets.synthetic import synthetic as synthetic
    from feddyn.data.population import Population as Population
    from feddyn.doctor.diagnosis import diagnose as diagnose
    from feddyn.engine.links import Links as Links
    from feddyn.errors import DivergenceError as DivergenceError
    from feddyn.errors import FeddynError as FeddynError
    from feddyn.errors import InputError as InputError
    from feddyn.errors import Interrupted as Interrupted
    from feddyn.metrics import Evaluation as Evaluation
    from feddyn.metrics import Metric as Metric
    from feddyn.metrics import Patience as Patience
    from feddyn.metrics import Target as Target
    from feddyn.models.flat import FlatModel as FlatModel
    from feddyn.runs.plan import Plan as Plan
    from feddyn.runs.run import Run as Run
    from feddyn.runs.saving import CheckpointEvery as CheckpointEvery
    from feddyn.runs.simulate import simulate as simulate
    from feddyn.runs.simulation import Simulation as Simulation
    from feddyn.settings.loading import load as load
    from feddyn.solvers import SGD as SGD
    from feddyn.solvers import AdamW as AdamW
    from feddyn.solvers import Cosine as Cosine
    from feddyn.solvers import Exact as Exact
    from feddyn.solvers import OneStep as OneStep
    from feddyn.solvers import Schedule as Schedule
    from feddyn.solvers import Solver as Solver
    from feddyn.solvers import Steps as Steps
    from feddyn.solvers import Warmup as Warmup
    from feddyn.solvers import Work as Work
    from feddyn.theory.suggest import suggest_alpha as suggest_alpha
    from feddyn.views.comparison import Comparison as Comparison
    from feddyn.views.comparison import compare as compare
    from feddyn.wire import Compressor as Compressor
    from feddyn.wire import Quantized as Quantized
    from feddyn.wire import RandomK as RandomK
    from feddyn.wire import Sign as Sign
    from feddyn.wire import TopK as TopK

_HOMES = {
    "feddyn.algorithms": (
        "AdaBest",
        "Algorithm",
        "FedACG",
        "FedAdam",
        "FedAvg",
        "FedAvgM",
        "FedDC",
        "FedDR",
        "FedDyn",
        "FedDynM",
        "FedProx",
        "FedSplit",
        "FedYogi",
        "Problem",
        "Scaffold",
        "Solution",
    ),
    "feddyn.data.population": ("Population",),
    "feddyn.data.datasets.synthetic": ("synthetic",),
    "feddyn.errors": ("DivergenceError", "FeddynError", "InputError", "Interrupted"),
    "feddyn.solvers": ("SGD", "AdamW", "Cosine", "Exact", "OneStep", "Schedule", "Solver", "Steps", "Warmup", "Work"),
    "feddyn.models.flat": ("FlatModel",),
    "feddyn.metrics": ("Evaluation", "Metric", "Patience", "Target"),
    "feddyn.engine.links": ("Links",),
    "feddyn.runs.plan": ("Plan",),
    "feddyn.runs.run": ("Run",),
    "feddyn.runs.simulate": ("simulate",),
    "feddyn.runs.simulation": ("Simulation",),
    "feddyn.runs.saving": ("CheckpointEvery",),
    "feddyn.settings.loading": ("load",),
    "feddyn.theory.suggest": ("suggest_alpha",),
    "feddyn.doctor.diagnosis": ("diagnose",),
    "feddyn.views.comparison": ("Comparison", "compare"),
    "feddyn.wire": ("Compressor", "Quantized", "RandomK", "Sign", "TopK"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":  # it stands in pyproject.toml, and nowhere else
        return import_module("importlib.metadata").version("feddyn")
    if name in ("data", "models"):  # which texts point into
        return import_module(f"feddyn.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'feddyn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
