"""The server's ledger: one file that says where a federation stands. Writing it is what counts a round.

It has the server's state and, of every site, the ticket that was counted last. A server that is killed before the write
has counted nobody, and all sites go on from the states that the ledger before it names; one that is killed after it has
counted everybody, and they go on from the new ones.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from feddyn.errors import FeddynError
from feddyn.flower.letters import (
    NAME,
    TICKET,
    Array,
    BadLetterError,
    Letter,
    beside,
    count_in,
    digest,
    name,
    own,
    together,
)
from feddyn.records.files import write_whole
from feddyn.records.lines import figure, strictly, table
from feddyn.round.cost import Cost

FILE, EVENTS = "ledger.safetensors", "events.jsonl"
"""What a federation has beside its record: where it stands, and what happened."""


@dataclass(frozen=True)
class Site:
    """A site that was admitted: its number, its samples, the ticket that was counted last, why its last upload was
    refused, if it was, and how many broadcasts it had heard at that ticket, to whose state it falls back."""

    number: int
    samples: int
    counted: str
    refused: str = ""
    heard: int = 0


@dataclass(frozen=True)
class Ledger:
    """Where a federation stands after `round` rounds.

    `session` counts the starts of the server, `totals` what all rounds cost, `recorded` the bytes of their record, and
    `norms` are the median norms of the uploads that were counted last. `vectors` are the server's state, `wire` what
    its next compressed broadcast depends on besides.
    """

    federation: str
    key: str
    session: int
    round: int
    sites: Mapping[str, Site]
    totals: Cost
    recorded: int
    norms: Mapping[str, float]
    vectors: Mapping[str, Array] = field(repr=False)
    wire: Mapping[str, Array] = field(default_factory=dict, repr=False)

    @property
    def samples(self) -> int:
        """The samples of all sites."""
        return sum(site.samples for site in self.sites.values())

    def share(self, site: str) -> float:
        """share_k = n_k / mean(n), to the same bit as in a simulation."""
        return float(np.multiply(self.sites[site].samples, len(self.sites) / self.samples, dtype=np.float64))

    def numbers(self, sites: Collection[str]) -> list[int]:
        """The numbers of some sites, in rising order."""
        return sorted(self.sites[name].number for name in sites)

    def with_sites(self, changed: Mapping[str, Site]) -> "Ledger":
        """The same with some sites as they are now."""
        return replace(self, sites={**self.sites, **changed})


def write(directory: Path, ledger: Ledger) -> None:
    """Count what is in the ledger."""
    words = asdict(replace(ledger, vectors={}, wire={}))
    text = json.dumps(
        {name: words[name] for name in words.keys() - {"vectors", "wire"}}, sort_keys=True, allow_nan=False
    )
    kept = together(ledger.vectors, ledger.wire)
    vectors = {name: np.ascontiguousarray(vector) for name, vector in kept.items()}
    known = {"ledger": text, "sha256": digest(text, vectors)}
    try:
        write_whole(directory / FILE, [save(vectors, metadata=known)], private=True)
    except OSError as error:
        raise FeddynError(
            f"the ledger cannot be written to {directory} ({error.strerror}); nothing of round {ledger.round} is "
            "counted, and all before it is kept"
        ) from None


def read(directory: Path) -> Ledger | None:
    """The ledger in a directory; None where there is none. One that was damaged is refused: sites would be asked for
    states that nobody counted."""
    path = directory / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            known = file.metadata() or {}
            vectors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        text = known.get("ledger", "")
        if known.get("sha256") != digest(text, vectors):
            raise ValueError("its hash is another one")
        return _ledger(table(strictly(text), "it"), vectors)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FeddynError(
            f"{path} is damaged ({error}): restore it from a backup; sites can follow one round back"
        ) from None


def _ledger(words: dict[str, Any], vectors: Mapping[str, Array]) -> Ledger:
    letter = Letter("ledger", words)
    sites = {}
    for site, entry in table(words["sites"], "sites").items():
        one = Letter("site", table(entry, "a site"))
        if not NAME.fullmatch(site) or not TICKET.fullmatch(str(entry.get("counted"))):
            raise BadLetterError(f"bad site {site!r}")
        heard = count_in(one, "heard") if "heard" in entry else 0  # ledgers of before there was compression
        number, samples = count_in(one, "number"), count_in(one, "samples", 1)
        sites[site] = Site(number, samples, entry["counted"], entry["refused"], heard)
    totals = Cost(*(count_in(Letter("", {"total": total}), "total") for total in words["totals"]))
    norms = {name: figure(table(words["norms"], "norms"), name) for name in words["norms"]}
    session, round, recorded = (count_in(letter, key) for key in ("session", "round", "recorded"))
    federation, key = name(letter, "federation"), str(words["key"])
    return Ledger(federation, key, session, round, sites, totals, recorded, norms, own(vectors), beside(vectors))
