"""Where the server writes its letters: the ledger as it stands, who can be reached, and tickets."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import final

from feddyn import __version__
from feddyn.algorithms.base import Census
from feddyn.errors import InputError
from feddyn.flower.arithmetic import Arithmetic, arrays
from feddyn.flower.broadcasts import Broadcasts
from feddyn.flower.journal import Journal
from feddyn.flower.ledger import Ledger
from feddyn.flower.letters import NAME, Array, Letter, Words, ticket
from feddyn.flower.post import Post
from feddyn.flower.rules import Rules
from feddyn.round.cost import Cost

AGAIN = 5
"""A site that did not hold what was counted, could not join or fails is left alone for so many attempts at rounds, then
for twice as many, and so on; who goes and comes back is asked at once."""
LONGER = 2
"""How often that is doubled."""


@final
class Desk:
    """A federation that is run by `rules`: `ledger` is where it stands, and `journal` keeps it."""

    def __init__(self, arithmetic: Arithmetic, rules: Rules, post: Post, journal: Journal):
        self.arithmetic, self.rules, self.post, self.journal = arithmetic, rules, post, journal
        found = journal.ledger or _new(arithmetic)
        if found.key != arithmetic.key:
            raise InputError(
                f"the federation in {journal.directory} has another method or model, or another compression "
                f"({found.key}), than this app ({arithmetic.key}): give it a directory of its own"
            )
        self._serial, self._turn, self._shunned, self._failures = 0, 0, dict[str, int](), dict[str, int]()
        # a session has tickets of its own, so that none that was lost with a server is ever made again
        self.ledger = replace(found, session=found.session + 1)
        journal.commit(self.ledger)
        journal.event("session", number=self.ledger.session, federation=found.federation, round=found.round)

    def commit(self, ledger: Ledger) -> None:
        """Count what the ledger says."""
        self.journal.commit(ledger)
        self.ledger = ledger

    def letter(self, kind: str, site: str, vectors: Mapping[str, Array] | None = None, **more: float) -> Letter:
        """A letter to a site, with a ticket of its own and what was counted of the site's."""
        self._serial += 1
        words: Words = {"federation": self.ledger.federation, "site": site, **more}
        words["ticket"] = ticket(self.ledger.session, self._serial)
        if site in self.ledger.sites:
            words |= {"counted": self.ledger.sites[site].counted, "refused": self.ledger.sites[site].refused}
        return Letter(kind, words, vectors or {})

    def online(self) -> list[str]:
        """Sites that can be reached, by names that can be used; one name, one site."""
        names = self.post.online()
        for name in sorted(set(names)):
            if not NAME.fullmatch(name):
                self.journal.once("bad name", site=repr(name)[:80])
            elif names.count(name) > 1:
                self.journal.once("two nodes of one name", site=name)
        for name in self._shunned.keys() - set(names):
            del self._shunned[name]
        return sorted({name for name in names if NAME.fullmatch(name) and names.count(name) == 1}, key=natural)

    def here(self) -> list[str]:
        """Admitted sites that can be asked, by number."""
        here = [name for name in self.online() if name in self.ledger.sites and self.due(name)]
        return sorted(here, key=lambda name: self.ledger.sites[name].number)

    def left_alone(self) -> list[str]:
        """Sites that can be reached, but are left alone for a while."""
        return [name for name in self.online() if not self.due(name)]

    def next_turn(self) -> None:
        """Another attempt at a round begins, or at having sites enough for one."""
        self._turn += 1

    def due(self, site: str) -> bool:
        """Whether a site may be asked again."""
        return self._shunned.get(site, 0) <= self._turn

    def shun(self, site: str, after: int = 0) -> None:
        """Leave a site alone for a while, each time for longer, if this is not one of its first `after` in a row."""
        count = self._failures[site] = self._failures.get(site, 0) + 1
        if count > after:
            turns = AGAIN * 2 ** min(count - after - 1, LONGER)
            self._shunned[site] = self._turn + turns
            self.journal.once("left alone", site=site, attempts=turns)

    def heard(self, site: str) -> None:
        """What was wrong with a site is no longer so."""
        self._failures.pop(site, None)

    def pardon(self) -> None:
        """Ask everybody again."""
        self._shunned.clear()
        self._failures.clear()

    def compare(self, site: str, answer: Letter) -> None:
        """Note a site that has another version of feddyn, whose arithmetic may differ in the last bits, or in more."""
        said = answer.words.get("feddyn")
        version = re.sub(r"[^0-9A-Za-z.+-]", "?", str(said))[:32] if said else "0.2.0 or older"
        if version != __version__:
            self.journal.once("another version", site=site, feddyn=version, server=__version__)


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts site-2 before site-10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def why(answer: Letter | None) -> str:
    """What a site says of its failure, which is a fixed word or somebody's mischief."""
    if answer is None:
        return "no answer"
    return re.sub(r"[^ -~]", "?", str(answer.words.get("why", answer.kind)))[:32]


def census(ledger: Ledger) -> Census:
    """How many sites there are, and samples on all of them."""
    return Census(len(ledger.sites), ledger.samples)


def _new(arithmetic: Arithmetic) -> Ledger:
    server, wire = arrays(arithmetic.begin()), Broadcasts(arithmetic).kept
    return Ledger(secrets.token_hex(8), arithmetic.key, 0, 0, {}, Cost(), 0, {}, server, wire)
