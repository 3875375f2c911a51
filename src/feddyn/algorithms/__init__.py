"""The methods, one file each, as in their papers."""

from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.algorithms.fedavg import FedAvg
from feddyn.algorithms.feddyn import FedDyn
from feddyn.algorithms.fedprox import FedProx
from feddyn.algorithms.fedsplit import FedSplit
from feddyn.algorithms.scaffold import Scaffold

__all__ = [
    "Algorithm",
    "Census",
    "FedAvg",
    "FedDyn",
    "FedProx",
    "FedSplit",
    "Problem",
    "Scaffold",
    "Scalar",
    "Solution",
    "State",
    "Vector",
]
