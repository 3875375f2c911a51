"""A federation in one process: the real server and sites, and a post that loses, delays and forges what it carries."""

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

import feddyn
from feddyn.data.population import Population
from feddyn.flower.arithmetic import Arithmetic, tensors
from feddyn.flower.device import Device
from feddyn.flower.journal import Journal
from feddyn.flower.judge import Judge
from feddyn.flower.letters import Letter, own
from feddyn.flower.post import Post
from feddyn.flower.rules import Rules
from feddyn.flower.server import Server
from feddyn.flower.store import DeviceStore
from feddyn.flower.worker import SiteWorker
from feddyn.models.flat import FlatModel
from feddyn.records.layout import Status

Fate = Callable[[str, Letter], str]
"""What becomes of a letter to a site: `answered`, `lost` before it arrives, `unanswered` after the site has worked."""


def always(_: str, __: Letter) -> str:
    return "answered"


def unreliable(seed: int, lost: float, unanswered: float) -> Fate:
    """Links on which letters to train are lost, and answers to them too."""
    draws = random.Random(seed)

    def fate(_: str, letter: Letter) -> str:
        draw = draws.random()
        if letter.kind != "train":
            return "answered"
        return "lost" if draw < lost else "unanswered" if draw < lost + unanswered else "answered"

    return fate


def only(population: Population, device: int) -> Population:
    """One device of a population."""
    x, y = population.samples(device)
    return Population.from_arrays(x, y, torch.zeros(len(y), dtype=torch.int64), transform=population.transform)


@dataclass
class Town(Post):
    """Sites site-0, site-1, ... with the devices of a population, of which `open` can be reached."""

    root: Path
    population: Population
    algorithm: feddyn.Algorithm
    solver: Any
    model: nn.Module
    open: list[str] = field(default_factory=list)
    fate: Fate = always
    forge: Callable[[str, Letter], Letter] = lambda _, answer: answer
    seen: list[tuple[str, Letter, Letter]] = field(default_factory=list)
    uplink: feddyn.Compressor | None = None
    downlink: feddyn.Compressor | None = None

    def __post_init__(self) -> None:
        self.open = self.open or [f"site-{k}" for k in range(self.population.devices)]
        self.devices = {f"site-{k}": self._device(k) for k in range(self.population.devices)}

    def _device(self, k: int) -> Device:
        def worker() -> SiteWorker:
            parts = (self.algorithm, self.solver, self.model, nn.functional.cross_entropy)
            return SiteWorker(*parts, lambda: only(self.population, k), self.uplink, self.downlink)

        return Device(self.root / f"disk-{k}", worker)

    def online(self) -> list[str]:
        return list(self.open)

    def exchange(self, letters: Mapping[str, Letter], seconds: float) -> Iterator[tuple[str, Letter | None]]:
        for name, letter in letters.items():
            fate = self.fate(name, letter)
            answer = self.deliver(name, letter) if fate != "lost" else None
            if answer is not None and fate == "answered":
                self.seen.append((name, letter, answer))
                yield name, self.forge(name, answer)
            elif fate == "lost":
                yield name, None

    def deliver(self, name: str, letter: Letter) -> Letter | None:
        return self.devices[name].answer(copy.deepcopy(letter))

    def weigh(self, letter: Letter) -> int:
        return sum(vector.nbytes for vector in letter.vectors.values())

    def journal(self, rounds: int, judge: Judge | None = None) -> Journal:
        setting = {"algorithm": {"name": type(self.algorithm).__name__.lower()}}
        return Journal(self.root / "server", setting, rounds, judge or Judge(FlatModel(self.model)))

    def server(self, judge: Judge | None = None, **rules: Any) -> Server:
        """A session of the server."""
        terms = Rules(**{"rounds": 5, "sites": len(self.open), "poll": 1e-9, **rules})
        arithmetic = Arithmetic(self.algorithm, FlatModel(self.model), self.uplink, self.downlink)
        return Server(arithmetic, terms, self, self.journal(terms.rounds, judge))

    def run(self, judge: Judge | None = None, **rules: Any) -> Server:
        """A session that goes to its end."""
        server = self.server(judge, **rules)
        server.run()
        server.journal.close(Status.FINISHED)
        return server

    def require_held(self, server: Server) -> None:
        """server[name] = 1/m SUM_k held_k[name], of the states that the ledger counts, to 1e-12."""
        ledger = server.desk.ledger
        vectors, count = tensors(ledger.vectors), len(ledger.sites)
        totals: dict[str, torch.Tensor] = {}
        for name, site in ledger.sites.items():
            root = self.devices[name].root
            found = DeviceStore(root, ledger.federation, name)._read(site.counted)
            assert found is not None, f"{name} does not hold {site.counted}"
            for key, vector in self.algorithm.held(tensors(own(found[0])), ledger.share(name)).items():
                totals[key] = totals.get(key, torch.zeros(())) + vector
        for key, total in totals.items():
            assert torch.allclose(vectors[key], total / count, rtol=0, atol=1e-12), key

    def theta(self) -> torch.Tensor:
        """The server's model after its last session."""
        return feddyn.load(self.root / "server").models["server"]
