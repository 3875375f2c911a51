"""What the server says of a model: its figures, and its parameters by their names."""

from collections.abc import Sequence
from typing import final

import torch

from feddyn.batches import owned
from feddyn.data.population import Population
from feddyn.metrics import Figures, Metric
from feddyn.models.flat import FlatModel
from feddyn.round.confined import confined
from feddyn.round.evaluation import Evaluator
from feddyn.round.rehearsal import try_out


@final
class Judge:
    """Judges models on the test set of a population, or where that has none on its samples; without a population there
    are no figures. `every`: rounds between two evaluations."""

    def __init__(
        self,
        model: FlatModel,
        population: Population | None = None,
        weight_decay: float = 0.0,
        metrics: Sequence[Metric] = (),
        every: int = 1,
    ):
        self.model, self.every, self._evaluator = model, every, None
        if population is not None:
            placed = population.to(model.theta.dtype, model.theta.device)
            initial = model.theta.clone()
            try_out(model, placed)
            self._evaluator = Evaluator(model, placed, weight_decay, metrics)
            model.theta.copy_(initial)

    def figures(self, theta: torch.Tensor) -> Figures | None:
        """The figures of a model, to the same bit as in a simulation."""
        if self._evaluator is None:
            return None
        theta = theta.to(self.model.theta.device)
        with confined(theta.device):
            parts = [self._evaluator.chunk(theta, number) for number in range(self._evaluator.chunks)]
        return self._evaluator.figures(theta, parts)

    def named(self, theta: torch.Tensor) -> dict[str, torch.Tensor]:
        """The parameters of a model by their names."""
        return owned(self.model.named(theta))
