"""What carries letters between a server and its sites; Flower is one such thing."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

from feddyn.flower.letters import Letter


class Post(ABC):
    """Delivery is at most once: letters and answers may be lost or come late."""

    @abstractmethod
    def online(self) -> list[str]:
        """The names of the sites that can be reached, each as often as there are nodes of that name."""

    @abstractmethod
    def exchange(self, letters: Mapping[str, Letter], seconds: float) -> Iterator[tuple[str, Letter | None]]:
        """Send a letter to each site, and give their answers as they come, until all have come or the time is over;
        None where it is known that there will be none."""

    @abstractmethod
    def weigh(self, letter: Letter) -> int:
        """The bytes of a letter's vectors as they are sent."""
