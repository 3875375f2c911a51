"""How a device solves its problem."""

from feddyn.solvers.exact import Exact
from feddyn.solvers.one_step import OneStep
from feddyn.solvers.sgd import SGD
from feddyn.solvers.work import Solver, Step, Walk, Work

__all__ = ["SGD", "Exact", "OneStep", "Solver", "Step", "Walk", "Work"]
