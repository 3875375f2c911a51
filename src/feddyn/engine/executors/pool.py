"""Independent pieces of work side by side, in processes of one thread each."""

import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, NoReturn, TypeVar

import torch

from feddyn.engine.memory import keep_freed_memory
from feddyn.engine.shield import SIGNALS
from feddyn.errors import FeddynError
from feddyn.round.rehearsal import confined

Item = TypeVar("Item")
Result = TypeVar("Result")


def streams(
    function: Callable[[Item], Generator[Result, None, None]], jobs: Sequence[Item], workers: int
) -> Generator[tuple[Item, Result], None, None]:
    """Each job with whatever `function(job)` yields, as it comes. Whoever closes this interrupts the processes, which
    still close what they yield from; they also notice, when they have something to say, that this process is gone. One
    worker is this process itself."""
    if min(workers, len(jobs)) == 1:
        with confined(torch.device("cpu")):
            for job in jobs:
                with closing(function(job)) as items:
                    yield from ((job, item) for item in items)
        return
    context, waiting = get_context("spawn"), deque(jobs)
    busy: dict[Connection, Item] = {}
    processes = []
    try:
        for _ in range(min(workers, len(jobs))):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(function, there))
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the process has handlers of its own
            try:
                process.start()
                processes.append(process)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            there.close()
            busy[here] = waiting.popleft()
            here.send(busy[here])
        while busy:
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                try:
                    going_on, found = pipe.recv()
                except EOFError:
                    raise FeddynError("a process was killed from outside, perhaps for want of memory") from None
                if isinstance(found, Exception):
                    raise found
                if going_on:
                    yield busy[pipe], found
                elif waiting:
                    busy[pipe] = waiting.popleft()
                    pipe.send(busy[pipe])
                else:
                    del busy[pipe]
                    pipe.close()
    finally:
        for pipe in busy:
            pipe.close()
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def each(
    function: Callable[[Item], Result], jobs: Sequence[Item], workers: int
) -> Generator[tuple[Item, Result], None, None]:
    """Each job with its result, as they finish."""
    return streams(partial(_once, function), jobs, workers)


def _once(function: Callable[[Item], Result], job: Item) -> Generator[Result, None, None]:
    yield function(job)


def _serve(function: Callable[[Any], Generator[Any, None, None]], pipe: Connection) -> None:
    """A process's life: jobs come in, (True, item) and in the end (False, None) or an error go out, until the other
    end of the pipe is closed."""
    torch.set_num_threads(1)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives out the work
    signal.signal(signal.SIGTERM, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    with suppress(KeyboardInterrupt, EOFError, OSError):
        while True:
            job = pipe.recv()
            try:
                with closing(function(job)) as items:
                    for item in items:
                        pipe.send((True, item))
                pipe.send((False, None))
            except Exception as error:
                if not isinstance(error, FeddynError):
                    error.add_note(traceback.format_exc())
                pipe.send((False, error))


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
