"""How much memory a process and all below it have."""

import os
from contextlib import suppress
from pathlib import Path


def resident() -> int | None:
    """The resident memory of this process and of all below it, shared pages counted once; nothing without a /proc."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process may end while we look
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    tree, kilobytes = [os.getpid()], 0
    for process in tree:
        tree.extend(child for child, parent in parents.items() if parent == process)
        with suppress(OSError):
            kilobytes += int(Path(f"/proc/{process}/smaps_rollup").read_text().partition("Pss:")[2].split()[0])
    return kilobytes * 1024 or None
