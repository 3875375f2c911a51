"""Several processes, on one machine or many, that run the same simulation together, started with torchrun.

Every rank keeps the server's state and takes its part of the active devices; what they report is all-reduced, exactly,
so that all ranks make the same next step. A device's state lives with the rank that trained it last and moves when
another one is to train it.
"""

import atexit
import os
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast, final

import torch
import torch.distributed as dist

from feddyn.engine.executors.group import Group, SingleProcess
from feddyn.engine.shield import SIGNALS
from feddyn.engine.store import Store
from feddyn.errors import DivergenceError, FeddynError, InputError

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


@final
class Ranks(Group):
    """The processes that torchrun started."""

    def __init__(self) -> None:
        if not dist.is_initialized():
            # device states and control are on the CPU whatever the model is on
            backend = "gloo"
            if torch.cuda.is_available():
                backend = "cpu:gloo,cuda:nccl"
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
            dist.init_process_group(backend, timeout=timedelta(hours=2))
            atexit.register(dist.destroy_process_group)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._home: dict[int, int] = {}

    def require_same(self, what: str, value: str) -> None:
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        if len(set(values)) > 1:
            other = next(rank for rank, theirs in enumerate(values) if theirs != values[0])
            error = InputError(
                f"the ranks do not run the same {what}: rank {other} differs from rank 0; give all of them the same "
                "setting, data and version of feddyn"
            )
            raise _everywhere(error)

    def assign(self, groups: Sequence[Sequence[int]], costs: Sequence[int]) -> list[int]:
        """Where two ranks have the same work, the one that holds more of the group's states takes it."""
        loads, chosen = [0] * self.size, []
        for group, cost in zip(groups, costs, strict=True):
            at_home = [sum(self._home.get(k) == rank for k in group) for rank in range(self.size)]
            best = min(range(self.size), key=lambda rank: (loads[rank], -at_home[rank], rank))
            loads[best] += cost
            chosen.append(best)
        return chosen

    def fetch(self, store: Store, groups: Sequence[Sequence[int]], owners: Sequence[int]) -> dict[int, int]:
        arrived: dict[int, int] = {}
        moves = [
            (k, self._home[k], owner)
            for group, owner in zip(groups, owners, strict=True)
            for k in group
            if self._home.get(k, owner) != owner
        ]
        if store.width == 0 or not moves:
            return arrived
        pending, rows = [], {}
        for k, home, owner in moves:
            if home == self.rank:
                pending.append(dist.isend(store.read([store.slots[k]])[0], owner))
            elif owner == self.rank:
                rows[k] = torch.empty(store.width, dtype=store.dtype)
                pending.append(dist.irecv(rows[k], home))
        for transfer in pending:
            if transfer is not None:
                transfer.wait()
        for k, row in rows.items():
            (arrived[k],) = store.stage([k])
            store.write([arrived[k]], store.named(row))
        return arrived

    def note_owners(self, store: Store, groups: Sequence[Sequence[int]], owners: Sequence[int]) -> None:
        for group, owner in zip(groups, owners, strict=True):
            for k in group:
                if owner != self.rank and k in store:
                    store.forget(k)
                self._home[k] = owner

    def from_first(self, what: T) -> T:
        box = [what]
        dist.broadcast_object_list(box)
        return box[0]

    def adopt(self, devices: Sequence[int]) -> None:
        self._home = dict.fromkeys(devices, 0)

    def bring_home(self, store: Store) -> None:
        away = [[k] for k, home in sorted(self._home.items()) if home != 0]
        for k, slot in self.fetch(store, away, [0] * len(away)).items():
            store.commit([k], [slot])
        self.note_owners(store, away, [0] * len(away))

    def total(self, numbers: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(numbers)
        return numbers

    def guarded(self, work: Callable[[], T]) -> T:
        """Where several fail, the error with the lowest place in the round counts, as in a single process."""
        error, result = None, None
        try:
            result = work()
        except Exception as caught:
            error = caught
        if int(self.total(torch.tensor(int(error is not None)))) == 0:
            return cast(T, result)
        found: list[Any] = [None] * self.size
        place = (getattr(error, "place", 0), self.rank)
        dist.all_gather_object(found, None if error is None else (place, str(error), type(error).__name__))
        first, words, kind = min(item for item in found if item is not None)
        if error is not None and place == first:
            raise _everywhere(error)
        known: dict[str, type[FeddynError]] = {"InputError": InputError, "DivergenceError": DivergenceError}
        raise _everywhere(known.get(kind, FeddynError)(words if kind.endswith("Error") else f"{kind}: {words}"))


def _everywhere(error: E) -> E:
    """Mark an error as one that all ranks raise, for whoever says it."""
    error.everywhere = True  # type: ignore[attr-defined]
    return error


def has_the_last_word() -> bool:
    """Whether this rank is to say an error that all of them raised and now end with: the first one is.

    They wait for each other here, and do not mind signals from here on: as soon as one has ended, torchrun sends
    SIGTERM to the others, which may still have to write or to say something.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    try:
        dist.all_reduce(torch.zeros(1))
    except RuntimeError:
        return True  # another rank has failed in another way meanwhile
    return dist.get_rank() == 0


def group() -> Group:
    """The processes that torchrun started this one with, or that are initialised already; else this one alone."""
    started = int(os.environ.get("WORLD_SIZE", "1")) > 1
    joined = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    return Ranks() if started or joined else SingleProcess()
