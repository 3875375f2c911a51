"""Independent pieces of work in processes of their own."""

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    function: Callable[[Item], Result], jobs: Sequence[Item], workers: int
) -> Generator[tuple[Item, Result], None, None]:
    """Each job with its result, as they finish, in so many processes of one thread each."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start)
    try:
        # Ctrl-C waits until the workers are under way, and never reaches them: what is blocked here is so in them
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            running = {pool.submit(function, job): job for job in jobs}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for done in as_completed(running):
            yield running[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _start() -> None:
    """One thread a process."""
    torch.set_num_threads(1)
