"""The slope of a problem's penalty and of weight decay, prepared for the many steps of one walk."""

import math

import torch

from feddyn.algorithms.base import Problem, Scalar, Vector


class Penalty:
    """prox (theta - center) + tilt + decay * theta, as a multiple of theta and a constant: `Problem.penalised_slope` in
    fewer passes over memory, and in place."""

    def __init__(self, problem: Problem, decay: float, theta: Vector):
        self.factor = like(theta, problem.prox + decay)
        self.constant = problem.tilt
        if problem.center is not None:
            pull = -problem.prox * problem.center
            self.constant = pull if problem.tilt is None else pull + problem.tilt
        self.minimum: Vector | None = None
        if self.constant is not None and not isinstance(self.factor, torch.Tensor) and self.factor != 0:
            self.minimum = self.constant / -self.factor

    def add_slope(self, g: Vector, theta: Vector) -> Vector:
        """The slope at theta, added to g in place."""
        if isinstance(self.factor, torch.Tensor):
            g.addcmul_(theta, self.factor)
        elif self.factor != 0:
            g.add_(theta, alpha=self.factor)
        return g if self.constant is None else g.add_(self.constant)

    def descend(self, theta: Vector, step: Scalar) -> None:
        """theta <- theta - step * slope, in one pass where there is one device.

        Never as theta * (1 - step * factor): the rounding of that number is the same at every step and adds up.
        """
        if isinstance(step, torch.Tensor) or isinstance(self.factor, torch.Tensor):
            theta.sub_(self.add_slope(torch.zeros_like(theta), theta).mul_(step))
        elif self.minimum is not None:
            theta.lerp_(self.minimum, step * self.factor)
        elif self.constant is not None:
            theta.sub_(self.constant, alpha=step)
        elif self.factor != 0:
            theta.sub_(theta, alpha=step * self.factor)


def like(theta: Vector, number: Scalar) -> Scalar:
    """A column in the type of theta; a plain number as it is, where it fits."""
    return number.to(theta) if isinstance(number, torch.Tensor) else fitting(theta, number)


def fitting(theta: Vector, number: float) -> float:
    """Infinity in the place of a number of which a product with another one might be beyond theta's type, which torch
    refuses: so the device diverges, and is found to."""
    return float(number) if number < torch.finfo(theta.dtype).max ** 0.5 else math.inf
