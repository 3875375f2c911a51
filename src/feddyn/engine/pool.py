"""Independent pieces of work side by side, in processes of one thread each."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, NamedTuple, NoReturn, TypeVar

import torch

from feddyn.engine.executors.base import sendable
from feddyn.engine.memory import keep_freed_memory
from feddyn.engine.shield import SIGNALS, held_back
from feddyn.errors import FeddynError
from feddyn.round.confined import confined


class Fault(NamedTuple):
    """What ended a job that was not meant to end so; errors may be results too."""

    error: Exception


Item = TypeVar("Item")
Result = TypeVar("Result")


def streams(
    function: Callable[[Item], Generator[Result, None, None]],
    jobs: Sequence[Item],
    workers: int,
    lost: Callable[[Item], Result] | None = None,
) -> Generator[tuple[Item, Result], None, None]:
    """Each job with whatever `function(job)` yields, as it comes. Whoever closes this interrupts the processes, which
    still close what they yield from; they do so too when this process is gone. Where one is killed from outside, its
    job has what `lost` makes of it, and another process takes its place; without `lost` it is an error. One worker is
    this process itself."""
    if min(workers, len(jobs)) == 1:
        with confined(torch.device("cpu")):
            for job in jobs:
                with closing(function(job)) as items:
                    yield from ((job, item) for item in items)
        return
    context, waiting = get_context("spawn"), deque(jobs)
    busy: dict[Connection, Item] = {}
    processes = []

    def begin() -> None:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(function, there))
        with held_back():
            process.start()
            processes.append(process)
        there.close()
        give(here)

    def give(pipe: Connection) -> None:
        busy[pipe] = waiting.popleft()
        with suppress(OSError):  # one that is dead is found when its answer is due
            pipe.send(busy[pipe])

    try:
        for _ in range(min(workers, len(jobs))):
            begin()
        while busy:
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                try:
                    going_on, found = pipe.recv()
                except (EOFError, ConnectionResetError):
                    if lost is None:
                        raise FeddynError("a process was killed from outside, perhaps for want of memory") from None
                    job = busy.pop(pipe)
                    pipe.close()
                    yield job, lost(job)
                    if waiting:
                        begin()
                    continue
                if isinstance(found, Fault):
                    raise found.error
                if going_on:
                    yield busy[pipe], found
                elif waiting:
                    give(pipe)
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
    """A process's life: jobs come in, (True, item) and in the end (False, None) or a fault go out, until the other end
    of the pipe is closed. When the process at that end is gone, whatever it is doing is interrupted."""
    threading.Thread(target=_follow, daemon=True).start()  # with signals blocked, so that they are for this thread
    torch.set_num_threads(1)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives out the work
    signal.signal(signal.SIGTERM, _interrupt)
    with suppress(KeyboardInterrupt, EOFError, OSError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            while True:
                _work(function, pipe)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _work(function: Callable[[Any], Generator[Any, None, None]], pipe: Connection) -> None:
    """One job."""
    job = pipe.recv()
    try:
        with closing(function(job)) as items:
            for item in items:
                pipe.send((True, item))
        pipe.send((False, None))
    except Exception as error:
        pipe.send((False, Fault(sendable(error))))


def _follow() -> None:
    """End as this process does when it is asked to, once the one that started it has ended, however it did."""
    parent = parent_process()
    assert parent
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
