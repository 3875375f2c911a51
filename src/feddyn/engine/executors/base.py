"""Who trains devices and evaluates models in this process's part of a round."""

import pickle
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch

from feddyn.algorithms.base import State, Vector
from feddyn.engine.trainer import Effort, Task
from feddyn.errors import FeddynError
from feddyn.round.evaluation import Part

Chunk: TypeAlias = tuple[int, int]
"""A model, by its place in a list, and a chunk of the samples it is evaluated on."""


class Executor(ABC):
    """Trains tasks and evaluates models."""

    @abstractmethod
    def train(self, tasks: Sequence[Task], down: State) -> tuple[torch.Tensor, Effort]:
        """The sum of what all devices report, and what it took. Tasks come longest first."""

    @abstractmethod
    def evaluate(self, models: Sequence[Vector], chunks: Sequence[Chunk]) -> list[Part]:
        """The sums of some chunks."""

    @abstractmethod
    def close(self) -> None:
        """End the processes that were started."""


@contextmanager
def placed(job: Task | Sequence[Chunk]) -> Iterator[None]:
    """Mark an error with the place in the round of the task that it happened in: of several, the first one counts."""
    try:
        yield
    except Exception as error:
        error.place = job.number if isinstance(job, Task) else 0  # type: ignore[attr-defined]
        raise


def sendable(error: Exception) -> Exception:
    """An exception that survives the pipe, with the place in the worker where it happened."""
    where = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = FeddynError(f"{type(error).__name__}: {error}")
    if not isinstance(error, FeddynError):
        error.add_note(f"in a worker process:\n{where}")
    return error
