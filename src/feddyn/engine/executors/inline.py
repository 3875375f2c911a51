"""Everything in this process, with one thread."""

from collections.abc import Sequence
from typing import final

import torch

from feddyn.algorithms.base import State, Vector
from feddyn.engine.executors.base import Chunk, Executor, placed
from feddyn.engine.trainer import Effort, Task, Trainer
from feddyn.round.confined import confined
from feddyn.round.evaluation import Evaluator, Part
from feddyn.round.sums import zeros


@final
class Inline(Executor):
    """This process, one thread."""

    def __init__(self, trainer: Trainer, evaluator: Evaluator):
        self.trainer, self.evaluator = trainer, evaluator

    def train(self, tasks: Sequence[Task], down: State) -> tuple[torch.Tensor, Effort]:
        device = self.trainer.initial.device
        total = zeros(self.trainer.width, device)
        with confined(device):
            self.trainer.model.module.train()
            effort = Effort()
            for task in tasks:
                with placed(task):
                    effort = effort.plus(self.trainer.train(task, down, total))
            return total, effort

    def evaluate(self, models: Sequence[Vector], chunks: Sequence[Chunk]) -> list[Part]:
        with confined(self.trainer.initial.device):
            return [self.evaluator.chunk(models[model], chunk) for model, chunk in chunks]

    def close(self) -> None:
        pass
