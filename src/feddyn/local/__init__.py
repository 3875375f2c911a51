"""How a device solves its problem."""

from feddyn.local.exact import Exact
from feddyn.local.one_step import OneStep
from feddyn.local.sgd import SGD
from feddyn.local.work import Solver, Step, Walk, Work

__all__ = ["SGD", "Exact", "OneStep", "Solver", "Step", "Walk", "Work"]
