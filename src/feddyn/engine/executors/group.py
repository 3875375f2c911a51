"""The processes that run a simulation together: what a round asks of them, and the answer of a single process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar, final

import torch

from feddyn.engine.store import Store

T = TypeVar("T")


class Group(ABC):
    """Processes that keep the same server and share out the active devices; all of them call every function.

    `rank` is the number of this process, `size` how many there are.
    """

    rank: int
    size: int

    @abstractmethod
    def require_same(self, what: str, value: str) -> None:
        """Refuse to go on where the processes do not agree."""

    @abstractmethod
    def assign(self, groups: Sequence[Sequence[int]], costs: Sequence[int]) -> list[int]:
        """A process for each group of devices, all with about the same work; groups come longest first."""

    @abstractmethod
    def fetch(self, store: Store, groups: Sequence[Sequence[int]], owners: Sequence[int]) -> dict[int, int]:
        """Send and receive the states of devices that are to be trained elsewhere; where in the store they were put."""

    @abstractmethod
    def note_owners(self, store: Store, groups: Sequence[Sequence[int]], owners: Sequence[int]) -> None:
        """Note after a round that the states of devices are where they were trained."""

    @abstractmethod
    def from_first(self, what: T) -> T:
        """The value that the first process has, for all of them."""

    @abstractmethod
    def adopt(self, devices: Sequence[int]) -> None:
        """Note that the first process has the states of these devices."""

    @abstractmethod
    def bring_home(self, store: Store) -> None:
        """Move all states to the first process."""

    @abstractmethod
    def total(self, numbers: torch.Tensor) -> torch.Tensor:
        """The sum over the processes, in place."""

    @abstractmethod
    def guarded(self, work: Callable[[], T]) -> T:
        """Do something that may fail in one process: then all raise, so that nobody waits for who is gone."""


@final
class SingleProcess(Group):
    """This process, and no other."""

    rank, size = 0, 1

    def require_same(self, what: str, value: str) -> None:
        pass

    def assign(self, groups: Sequence[Sequence[int]], costs: Sequence[int]) -> list[int]:
        return [0] * len(groups)

    def fetch(self, store: Store, groups: Sequence[Sequence[int]], owners: Sequence[int]) -> dict[int, int]:
        return {}

    def note_owners(self, store: Store, groups: Sequence[Sequence[int]], owners: Sequence[int]) -> None:
        pass

    def from_first(self, what: T) -> T:
        return what

    def adopt(self, devices: Sequence[int]) -> None:
        pass

    def bring_home(self, store: Store) -> None:
        pass

    def total(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers

    def guarded(self, work: Callable[[], T]) -> T:
        return work()
