"""The methods, one file each, as in their papers."""

from feddyn.algorithms.adabest import AdaBest
from feddyn.algorithms.base import Algorithm, Census, Problem, Scalar, Solution, State, Vector
from feddyn.algorithms.fedacg import FedACG
from feddyn.algorithms.fedadam import FedAdam
from feddyn.algorithms.fedavg import FedAvg
from feddyn.algorithms.fedavgm import FedAvgM
from feddyn.algorithms.feddc import FedDC
from feddyn.algorithms.feddr import FedDR
from feddyn.algorithms.feddyn import FedDyn
from feddyn.algorithms.feddynm import FedDynM
from feddyn.algorithms.fedprox import FedProx
from feddyn.algorithms.fedsplit import FedSplit
from feddyn.algorithms.fedyogi import FedYogi
from feddyn.algorithms.scaffold import Scaffold

__all__ = [
    "AdaBest",
    "Algorithm",
    "Census",
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
    "Scalar",
    "Solution",
    "State",
    "Vector",
]
