"""Worker processes on this machine, one thread each.

Workers are forked: they see the model, the data and the functions of the process that started them without copying or
pickling anything. Vectors go through shared memory, and pipes carry only who is to be trained. A worker adds up what
its devices report in a sum of its own; since sums are exact, it does not matter who trained whom.
"""

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias, final

import torch

from feddyn.algorithms.base import State, Vector
from feddyn.engine.executors.base import Chunk, Executor, placed, sendable
from feddyn.engine.executors.inline import Inline
from feddyn.engine.memory import keep_freed_memory, shared
from feddyn.engine.shield import SIGNALS, held_back
from feddyn.engine.trainer import Effort, Task, Trainer
from feddyn.errors import FeddynError, InputError
from feddyn.round.evaluation import Evaluator, Part
from feddyn.round.sums import zeros

Job: TypeAlias = Task | list[Chunk]
"""What a worker is sent: devices to train, or chunks to evaluate."""
LOST = 3
"""A job whose worker dies so many times is given up."""


@final
class Forked(Executor):
    """`count` worker processes of one thread each; one that dies is replaced, and its part of the round is redone."""

    def __init__(self, trainer: Trainer, evaluator: Evaluator, count: int, models: int, private: Sequence[int]):
        self.trainer, self.evaluator, self._private = trainer, evaluator, private
        like = trainer.initial
        self._down = {name: shared((size,), like.dtype) for name, size in trainer.down.items()}
        self._models = shared((models, like.numel()), like.dtype)
        self._totals = shared((count, 2, trainer.width), torch.float64)
        self._pipes: list[Connection] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []
        for place in range(count):
            self._start_worker(place)

    def train(self, tasks: Sequence[Task], down: State) -> tuple[torch.Tensor, Effort]:
        for name, vector in self._down.items():
            vector.copy_(down[name])
        efforts, who = self._do(tasks)
        total = zeros(self.trainer.width)
        for place in sorted(set(who)):
            total += self._totals[place]
        return total, reduce(Effort.plus, efforts, Effort())

    def evaluate(self, models: Sequence[Vector], chunks: Sequence[Chunk]) -> list[Part]:
        for row, model in zip(self._models, models, strict=False):
            row.copy_(model)
        count = len(self._pipes)
        jobs = [list(chunks[len(chunks) * i // count : len(chunks) * (i + 1) // count]) for i in range(count)]
        parts, _ = self._do([job for job in jobs if job])
        return [part for job in parts for part in job]

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.terminate()
            process.join()

    def _do(self, jobs: Sequence[Job]) -> tuple[list[Any], list[int]]:
        """The results of the jobs, in order, and which worker did each; the longest jobs are given out first."""
        results: list[Any] = [None] * len(jobs)
        who, losses = [-1] * len(jobs), [0] * len(jobs)
        todo, busy, idle = deque(range(len(jobs))), dict[int, int](), set(range(len(self._pipes)))
        while todo or busy:
            while todo and idle:
                place, number = idle.pop(), todo.popleft()
                fresh = place not in who
                busy[place], who[number] = number, place
                self._send(place, (fresh, jobs[number]))
            ready = set(wait([self._pipes[place] for place in busy]))
            for place in [place for place in busy if self._pipes[place] in ready]:
                number = busy.pop(place)
                idle.add(place)
                try:
                    results[number] = self._pipes[place].recv()
                except (EOFError, OSError):
                    losses[number] += 1
                    if losses[number] == LOST:
                        raise self._given_up(jobs[number], place) from None
                    again = [i for i, worker in enumerate(who) if worker == place]
                    for i in again:
                        who[i] = -1
                    todo.extend(again)
                    self._start_worker(place)
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, BaseException):
                with placed(job):
                    raise result
        return results, who

    def _send(self, place: int, message: tuple[bool, Job]) -> None:
        with suppress(OSError):  # a worker that is dead is found when its answer is due
            self._pipes[place].send(message)

    def _start_worker(self, place: int) -> None:
        """Start a worker, in the place of one that died if there was one."""
        here, there = multiprocessing.Pipe()
        if place < len(self._pipes):
            self._pipes[place].close()
            self._processes[place].join()
            self._pipes[place] = here
        else:
            self._pipes.append(here)
        process = multiprocessing.get_context("fork").Process(target=self._work, args=(place, there), daemon=True)
        with held_back():
            process.start()
        there.close()
        self._processes[place:] = [process, *self._processes[place + 1 :]]

    def _work(self, place: int, pipe: Connection) -> None:
        """A worker's life: jobs come in, results go out, until the pipe is closed or its other end dies."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives out the work
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        for other in self._pipes:
            other.close()
        for handle in self._private:
            os.close(handle)
        torch.set_num_threads(1)
        keep_freed_memory()
        total = self._totals[place]
        while True:
            try:
                fresh, job = pipe.recv()
                pipe.send(self._result(job, total.zero_() if fresh else total))
            except (EOFError, OSError):
                os._exit(0)

    def _result(self, job: Job, total: torch.Tensor) -> Effort | list[Part] | Exception:
        try:
            if isinstance(job, Task):
                self.trainer.model.module.train()
                return self.trainer.train(job, self._down, total)
            return [self.evaluator.chunk(self._models[model], chunk) for model, chunk in job]
        except Exception as error:
            return sendable(error)

    def _given_up(self, job: Job, place: int) -> FeddynError:
        self._processes[place].join()
        code = self._processes[place].exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if not isinstance(job, Task):
            return FeddynError(f"evaluating the model ended its worker {LOST} times ({how}): is there memory enough?")
        names = ", ".join(self.trainer.population.name(k) for k in job.devices)
        return FeddynError(
            f"training device {names} in round {job.round + 1} ended its worker {LOST} times ({how}): "
            "is there memory enough for a batch?"
        )


def executor(
    trainer: Trainer, evaluator: Evaluator, workers: int | None, models: int, private: Sequence[int]
) -> Executor:
    """Workers (None: one for each core that this process may use), or this process where there would be only one."""
    possible = _can_fork() and trainer.initial.device.type == "cpu"
    if workers is None:
        workers = cores() if possible else 1
    if workers == 1:
        return Inline(trainer, evaluator)
    if not possible:
        raise InputError(
            f"workers = {workers} needs Linux, a model on the CPU and no CUDA device in sight (CUDA does not survive a "
            "fork): use workers = 1, or several ranks with torchrun"
        )
    return Forked(trainer, evaluator, workers, models, private)


def cores() -> int:
    """CPU cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _can_fork() -> bool:
    system = sys.platform == "linux" and hasattr(os, "fork")
    return system and not torch.cuda.is_available() and not multiprocessing.current_process().daemon
