"""Moments in which Ctrl-C has to wait."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def shielded() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM until what is inside is done, so that it is done whole or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled by the main thread
        return
    seen: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number in SIGNALS:
            signal.signal(number, lambda number, _: seen.append(number))
        yield
    finally:
        # whichever of them interrupts as soon as it can again, the other one gets its handler back too
        try:
            signal.signal(signal.SIGTERM, before[signal.SIGTERM])
        finally:
            signal.signal(signal.SIGINT, before[signal.SIGINT])
        for late in seen:
            signal.raise_signal(late)


@contextmanager
def held_back() -> Iterator[None]:
    """Block the signals in this thread, for a process that is started inside: it has them blocked too, until it has
    handlers of its own and unblocks them."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
