"""What the simulator keeps for devices between rounds: their states and latest models, of those ever active.

Every such device has a slot, a row of numbers. Slots are in memory up to a budget and beyond it in a file. A round
writes to fresh slots, which become the devices' own only when the round is committed, so a round that fails, or is
trained again, finds everything as it was.
"""

import os
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

import numpy as np
import torch

from feddyn.algorithms.base import State, Vector
from feddyn.engine.memory import shared
from feddyn.errors import FeddynError, InputError


class Store:
    """Slots for `devices` devices and a round of all of them; `initial` is what a device starts with.

    Processes forked from this one read and write slots; only the first one gives them out. `changed` are the devices
    that got another slot since it was last emptied.
    """

    def __init__(self, initial: State, devices: int, budget: int):
        self.devices = devices
        self.layout: dict[str, slice] = {}
        at = 0
        for name, vector in initial.items():
            self.layout[name] = slice(at, at + vector.numel())
            at += vector.numel()
        like = next(iter(initial.values()), torch.zeros(0))
        self.width, self.dtype = at, like.dtype
        self.slots: dict[int, int] = {}
        self.changed: set[int] = set()
        self._initial = torch.cat([vector.cpu() for vector in initial.values()]) if initial else torch.zeros(0)
        self._row_bytes = at * self.dtype.itemsize
        wanted = 2 * devices
        in_memory = min(wanted, budget // self._row_bytes) if at else wanted
        try:
            self._memory = shared((in_memory if at else 0, at), self.dtype)
        except OSError as error:
            raise InputError(
                f"{in_memory * self._row_bytes / 1e9:.1f} GB of memory for device states cannot be had "
                f"({error.strerror}): give a smaller state_memory; the rest goes to a file"
            ) from None
        self._in_memory, self._next, self._free = in_memory, 0, list[int]()
        self._file: IO[bytes] | None = None
        if in_memory < wanted:
            self._file = _scratch()
            weakref.finalize(self, self._file.close)

    def __contains__(self, device: int) -> bool:
        return device in self.slots

    def stage(self, devices: Iterable[int]) -> list[int]:
        """A fresh slot for each device."""
        fresh = []
        for _ in devices:
            if self._free:
                fresh.append(self._free.pop())
            else:
                fresh.append(self._next)
                self._next += 1
        return fresh

    def commit(self, devices: Iterable[int], fresh: Iterable[int]) -> None:
        """Make the fresh slots the devices' own."""
        for device, slot in zip(devices, fresh, strict=True):
            if device in self.slots:
                self._free.append(self.slots[device])
            self.slots[device] = slot
            self.changed.add(device)

    def release(self, slots: Iterable[int]) -> None:
        """Give slots back."""
        self._free.extend(slots)

    def forget(self, device: int) -> None:
        """Drop what is kept for a device."""
        self._free.append(self.slots.pop(device))
        self.changed.discard(device)

    def clear(self) -> None:
        """Forget everything, and give the memory and the disk back."""
        self.slots, self.changed, self._free, self._next = {}, set(), [], 0
        self._memory, self._in_memory = self._memory[:0].clone(), 0
        if self._file is not None:
            self._file.close()

    def read(self, slots: Sequence[int | None]) -> torch.Tensor:
        """The rows of some slots, (slots, width); None has what a device starts with."""
        if self.width == 0:
            return self._initial.expand(len(slots), 0)
        if len(slots) == 1 and slots[0] is not None and slots[0] < self._in_memory:
            return self._memory[slots[0], None]  # nobody writes to it while it is a device's own
        rows = self._initial.repeat(len(slots), 1)
        known = [(row, slot) for row, slot in enumerate(slots) if slot is not None]
        quick = [(row, slot) for row, slot in known if slot < self._in_memory]
        if quick:
            places, sources = torch.tensor(quick).unbind(1)
            rows[places] = self._memory[sources]
        for row, slot in known:
            if slot >= self._in_memory:
                self._read_file(slot, rows[row])
        return rows

    def write(self, slots: Sequence[int], vectors: Mapping[str, Vector]) -> None:
        """Fill slots; the vectors are stacked, a row a slot, or one slot's."""
        if self.width == 0:
            return
        if len(slots) == 1 and slots[0] < self._in_memory:
            for name, columns in self.layout.items():
                self._memory[slots[0], columns] = vectors[name].reshape(-1)
            return
        rows = torch.cat([vectors[name].reshape(len(slots), -1) for name in self.layout], dim=1).to("cpu", self.dtype)
        if all(slot < self._in_memory for slot in slots):
            self._memory.index_copy_(0, torch.tensor(slots), rows)
            return
        for row, slot in zip(rows, slots, strict=True):
            if slot < self._in_memory:
                self._memory[slot].copy_(row)
            else:
                self._write_file(slot, row)

    def named(self, rows: torch.Tensor) -> State:
        """Rows cut into their vectors, as views."""
        return {name: rows[..., columns] for name, columns in self.layout.items()}

    def state(self, device: int) -> State:
        """All that is kept for a device."""
        return self.named(self.read([self.slots.get(device)])[0])

    # Files are read and written, not mapped: pages of a mapped file would count against the budget.

    def _read_file(self, slot: int, row: torch.Tensor) -> None:
        assert self._file is not None
        buffer = memoryview(row.numpy().data).cast("B")
        done = _read_at(self._file.fileno(), buffer, (slot - self._in_memory) * self._row_bytes)
        if done != self._row_bytes:
            raise FeddynError(f"the file of device states is short: {done} of {self._row_bytes} bytes read")

    def _write_file(self, slot: int, row: torch.Tensor) -> None:
        assert self._file is not None
        data = memoryview(np.ascontiguousarray(row.numpy()).data).cast("B")
        at = (slot - self._in_memory) * self._row_bytes
        try:
            while data:
                done = _write_at(self._file.fileno(), data, at)
                data, at = data[done:], at + done
        except OSError as error:
            raise FeddynError(
                f"device states no longer fit on the disk of {tempfile.gettempdir()} ({error.strerror}); "
                "free some of it, set TMPDIR to a larger one, or raise state_memory"
            ) from None


# Forked processes share a file's position, so it is used only on systems without these two, which do not fork either.


def _read_at(file: int, buffer: memoryview, at: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(file, [buffer], at)
    os.lseek(file, at, os.SEEK_SET)
    data = os.read(file, len(buffer))
    buffer[: len(data)] = data
    return len(data)


def _write_at(file: int, data: memoryview, at: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(file, data, at)
    os.lseek(file, at, os.SEEK_SET)
    return os.write(file, data)


def _scratch() -> IO[bytes]:
    """A file that vanishes with the process, however that ends."""
    try:
        return tempfile.TemporaryFile(buffering=0)
    except OSError as error:
        raise InputError(
            f"there is no room for device states: {tempfile.gettempdir()} cannot be written to ({error.strerror}); "
            "set TMPDIR to a directory that can, or raise state_memory"
        ) from None
