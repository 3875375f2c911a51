"""Ctrl-C and SIGTERM on the command line: once is enough, however often they come, and the end is always the same."""

import signal
import sys
import time
from types import FrameType
from typing import NoReturn

from feddyn.cli.show import leads, say
from feddyn.engine.shield import SIGNALS

PATIENCE = 1.0
"""Seconds in which more signals mean the same as the first."""


def listen() -> None:
    """Let both raise KeyboardInterrupt, unless whoever started this process wants them ignored (nohup, a job in the
    background)."""
    last = -PATIENCE

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > PATIENCE:
            last = now
            raise KeyboardInterrupt

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, hear)


def deafen() -> None:
    """Ignore both signals from here on: all is done but for the end of the process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def interrupted(words: str) -> NoReturn:
    """End an interrupted command: one sentence that says how to go on, and exit code 130."""
    deafen()
    if leads():
        say(f"feddyn: interrupted; {words}", err=True)
    sys.exit(130)
