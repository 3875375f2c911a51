"""What a solver is, and all that the engine needs to know of one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Self, TypeAlias

from feddyn.algorithms.base import Problem, Scalar, Solution
from feddyn.solvers.work import StepwiseWork, Work

Solve: TypeAlias = Callable[[Problem, Work], Solution]
"""What is taken wherever a solver is: a `Solver`, or any function of a problem and a device at work (see `Own`)."""


class Solver(ABC):
    """How a device solves its problem. Final classes implement it; none extends another.

    It minimises  loss(theta) + weight_decay/2 ||theta||^2 + <tilt, theta> + prox/2 ||theta - center||^2  from `start`;
    a `tilt` of None is zero, and with a `center` of None there is no quadratic term. `Problem.penalised` adds these two
    to a loss, and `Problem.penalised_slope` to a gradient.
    """

    weight_decay: float = 0.0
    """A part of the objective that is reported."""
    reports_path: bool = True
    """Whether solutions have a path, which methods such as SCAFFOLD need."""
    in_steps: bool = False
    """Whether it works in the steps of `work.steps`, of which a slow device gets only a part done."""
    remedy: str = "smaller steps"
    """What of its own parameters usually helps where training diverges."""

    @property
    def name(self) -> str:
        """What to call the solver in a sentence."""
        return type(self).__name__

    def check(self, problem: Problem) -> None:  # noqa: B027 (most solvers have nothing to refuse)
        """Refuse what cannot be solved, before any work starts."""

    @abstractmethod
    def __call__(self, problem: Problem, work: Work) -> Solution:
        """Solve the problem for a device."""


class Batchable(Solver):
    """A solver that needs no more than a `StepwiseWork`, so that it also solves the problems of many devices, and of
    many settings of a search, as one: vectors are stacked, and scalars are columns."""

    in_steps = True

    @abstractmethod
    def __call__(self, problem: Problem, work: StepwiseWork) -> Solution:
        """Solve the problem for a device, or stacked problems for a stack of them."""

    @property
    @abstractmethod
    def numbers(self) -> Mapping[str, Scalar]:
        """The parameters, by name, that may be columns: one number for each of the stacked settings."""

    @abstractmethod
    def with_numbers(self, numbers: Mapping[str, Scalar]) -> Self:
        """The same solver with other `numbers`."""
