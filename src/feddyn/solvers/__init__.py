"""How a device solves its problem."""

from feddyn.solvers.adamw import AdamW
from feddyn.solvers.base import Batchable, Solve, Solver
from feddyn.solvers.exact import Exact
from feddyn.solvers.one_step import OneStep
from feddyn.solvers.own import as_solver
from feddyn.solvers.schedules import Cosine, Schedule, Steps, Warmup
from feddyn.solvers.sgd import SGD
from feddyn.solvers.work import Step, StepwiseWork, Work

__all__ = [
    "SGD",
    "AdamW",
    "Batchable",
    "Cosine",
    "Exact",
    "OneStep",
    "Schedule",
    "Solve",
    "Solver",
    "Step",
    "Steps",
    "StepwiseWork",
    "Warmup",
    "Work",
    "as_solver",
]
