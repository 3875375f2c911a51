"""Where numbers are computed: in one thread, and without a trace in the world's randomness."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def confined(device: torch.device) -> Iterator[None]:
    """One thread, so that sums have one order on every machine, and random layers that leave no trace outside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        torch.set_num_threads(threads)
