"""Memory that processes share, and memory that is kept between the steps of a training."""

import ctypes
import mmap
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # from malloc.h
_KEEP = 1 << 30


def shared(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of zeros that processes forked later see too.

    Anonymous memory, not a file in /dev/shm, which containers keep small; pages cost nothing until they are written.
    """
    size = torch.Size(shape)
    if size.numel() == 0:
        return torch.zeros(size, dtype=dtype)
    buffer = mmap.mmap(-1, size.numel() * dtype.itemsize)
    return torch.frombuffer(buffer, dtype=dtype).view(size)


def keep_freed_memory() -> None:
    """Let malloc keep what is freed. By default glibc hands large blocks back to the kernel and asks for them again, so
    that every training step pays for fresh pages: a third of the time of an LSTM's step. For processes of our own."""
    if platform.libc_ver()[0] == "glibc":
        malloc = ctypes.CDLL(None)
        malloc.mallopt(_MMAP_THRESHOLD, _KEEP)
        malloc.mallopt(_TRIM_THRESHOLD, _KEEP)


def quarter_of_memory() -> int:
    """A quarter of the machine's memory, or of what a container may have of it, shared with other ranks on it."""
    limit = 8 << 30  # where the system does not tell
    with suppress(AttributeError, OSError, ValueError):
        limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        limit = min(limit, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return limit // 4 // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
