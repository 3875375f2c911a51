"""The server's side of the protocol: sites are admitted, rounds are closed and counted, whatever happens to anybody.

A round sends every chosen site a letter with a ticket of its own, takes the uploads that come in time and are as they
should be, adds them up, and writes the ledger: that counts it. With fewer uploads than `least` nothing is written, and
the round is repeated with new tickets. Sites learn from the next letter which of their states was counted.
"""

import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, final

from feddyn.algorithms.base import Census
from feddyn.errors import FeddynError, InputError
from feddyn.flower.arithmetic import Arithmetic, arrays, tensors
from feddyn.flower.journal import Journal
from feddyn.flower.ledger import Ledger, Site
from feddyn.flower.letters import NAME, BadLetter, Letter, count_in, ticket, ticket_in
from feddyn.flower.rules import Rules
from feddyn.flower.uploads import Upload, checked, medians, outliers, same
from feddyn.round.participation import Sampler
from feddyn.round.seeds import integer

AGAIN = 5
"""Rounds for which a site that did not hold what was counted, or could not join, is not asked again."""


class Post(ABC):
    """What carries letters. Delivery is at most once: letters and answers may be lost or come late."""

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


class Gathered(NamedTuple):
    """What became of those who were asked in a round."""

    uploads: dict[str, Upload]
    lost: list[str]
    late: list[str]
    refused: dict[str, str]
    bytes_up: int
    bytes_down: int
    wasted: int


@final
class Server:
    """Runs a federation by `rules`; `journal` keeps its ledger and its record."""

    def __init__(self, arithmetic: Arithmetic, rules: Rules, post: Post, journal: Journal):
        self.arithmetic, self.rules, self.post, self.journal = arithmetic, rules, post, journal
        found = journal.ledger or self._new()
        if found.key != arithmetic.key:
            raise InputError(
                f"the federation in {journal.directory} has another method or model ({found.key}) than this app "
                f"({arithmetic.key}): give it a directory of its own"
            )
        self._serial = 0
        self._shunned: dict[str, int] = {}
        self.ledger = replace(found, session=found.session + 1)
        journal.commit(self.ledger)
        journal.event("session", number=self.ledger.session, federation=found.federation, round=found.round)

    def _new(self) -> Ledger:
        vectors = arrays(self.arithmetic.begin())
        return Ledger(secrets.token_hex(8), self.arithmetic.key, 0, 0, {}, (0,) * 5, 0, {}, vectors)

    def run(self) -> None:
        """All rounds that are left; then the sites are told what was counted last."""
        while self.ledger.round < self.rules.rounds:
            self.admit()
            if len(self.ledger.sites) < self.rules.sites:
                time.sleep(self.rules.poll)
                continue
            if self.ledger.round == 0:
                self._number()
            self.round()
        self.settle()

    def round(self) -> None:
        """One round, repeated until it is counted."""
        attempt = 0
        while True:
            here = self._here()
            chosen = self._choose(here, attempt) if len(here) >= self.rules.least else []
            if len(chosen) >= self.rules.least:
                gathered = self._gather(chosen)
                if len(gathered.uploads) >= self.rules.least:
                    self._count(gathered, attempt + 1)
                    return
                self.journal.event("repeated", round=self.ledger.round + 1, uploads=len(gathered.uploads))
            attempt += 1
            time.sleep(self.rules.poll)
            self.admit()

    def admit(self) -> None:
        """Let sites join that are not known yet, if they have the same method and model."""
        strangers = [name for name in self._online() if name not in self.ledger.sites and self._due(name)]
        if joined := self._welcome(strangers):
            self._write_in(joined)

    def _welcome(self, names: Sequence[str]) -> dict[str, Site]:
        """Have sites make a first state at the server's model; those that did."""
        theta = {"theta": self.ledger.vectors["theta"]}
        letters = {name: self._letter("hello", name, theta) for name in names}
        joined = {}
        for name, answer in self.post.exchange(letters, self.rules.welcome) if letters else ():
            try:
                if answer is None or answer.kind != "done":
                    raise BadLetter("no answer" if answer is None else str(answer.words.get("why", answer.kind))[:32])
                if ticket_in(answer) != letters[name].words["ticket"]:
                    raise BadLetter("another ticket")
                if answer.words.get("key") != self.arithmetic.key:
                    raise BadLetter("another method or model")
                joined[name] = Site(-1, count_in(answer, "samples", 1), ticket_in(answer))
            except BadLetter as error:
                self.journal.event("not admitted", site=name, why=str(error))
        for name in letters.keys() - joined.keys():
            self._shunned[name] = self.ledger.round + AGAIN
        return joined

    def _write_in(self, joined: Mapping[str, Site]) -> None:
        before, number = self.ledger, 1 + max((site.number for site in self.ledger.sites.values()), default=-1)
        fresh = {
            name: replace(joined[name], number=number + i) for i, name in enumerate(sorted(joined, key=natural))
        }
        after = before.with_sites(fresh)
        if before.round:
            server = self.arithmetic.admit(tensors(before.vectors), _census(before), _census(after))
            after = replace(after, vectors=arrays(server))
        self._commit(after)
        for name, site in fresh.items():
            self.journal.event("joined", site=name, number=site.number, samples=site.samples)

    def _number(self) -> None:
        """Before the first round, number the sites in the order of their names, whoever came first."""
        ordered = sorted(self.ledger.sites, key=natural)
        if [self.ledger.sites[name].number for name in ordered] != list(range(len(ordered))):
            self._commit(
                self.ledger.with_sites({n: replace(self.ledger.sites[n], number=i) for i, n in enumerate(ordered)})
            )

    def _online(self) -> list[str]:
        """Sites that can be reached, by names that can be used; one name, one site."""
        names = self.post.online()
        for name in sorted(set(names)):
            if not NAME.fullmatch(name):
                self.journal.once("bad name", site=repr(name)[:80])
            elif names.count(name) > 1:
                self.journal.once("two nodes of one name", site=name)
        return sorted({name for name in names if NAME.fullmatch(name) and names.count(name) == 1}, key=natural)

    def _due(self, name: str) -> bool:
        return self._shunned.get(name, 0) <= self.ledger.round

    def _here(self) -> list[str]:
        """Admitted sites that can be asked, by number."""
        here = [name for name in self._online() if name in self.ledger.sites and self._due(name)]
        return sorted(here, key=lambda name: self.ledger.sites[name].number)

    def _choose(self, here: Sequence[str], attempt: int) -> list[str]:
        """Who is active: as in a simulation if everybody is here; a repeated round has a draw of its own."""
        rules, round = self.rules, self.ledger.round
        if isinstance(p := rules.participation, Sequence):
            return [name for name in here if self.ledger.sites[name].number in p[round]]
        seed = rules.seed if attempt == 0 else integer(rules.seed, "participation", round, attempt)
        sampler = Sampler(min(p, len(here)) if isinstance(p, int) else p, len(here), rules.rounds, seed)
        return [here[i] for i in sampler.active(round)]

    def _letter(self, kind: str, name: str, vectors: Mapping[str, object], **more: float) -> Letter:
        self._serial += 1
        words = {"federation": self.ledger.federation, "site": name, **more}
        words["ticket"] = ticket(self.ledger.session, self._serial)
        if name in self.ledger.sites:
            words |= {"counted": self.ledger.sites[name].counted, "refused": self.ledger.sites[name].refused}
        return Letter(kind, words, dict(vectors))  # type: ignore[arg-type]

    def _gather(self, chosen: Sequence[str]) -> Gathered:
        """Ask sites to train, and take what is as it should be."""
        ledger, limit = self.ledger, self.arithmetic.limit(len(self.ledger.sites))
        down = arrays(self.arithmetic.algorithm.broadcast(tensors(ledger.vectors)))
        letters = {
            name: self._letter(
                "train",
                name,
                down,
                share=ledger.share(name),
                seed=self.rules.seed,
                round=ledger.round,
                number=ledger.sites[name].number,
            )
            for name in chosen
        }
        uploads, lost, refused, sent = {}, [], {}, {name: 0 for name in chosen}
        for name, answer in self.post.exchange(letters, self.rules.deadline):
            if answer is None:
                lost.append(name)
                continue
            sent[name] = self.post.weigh(answer)
            try:
                if answer.kind != "done":
                    raise BadLetter(_why(answer))
                uploads[name] = checked(answer, str(letters[name].words["ticket"]), self.arithmetic.upload, limit)
            except BadLetter as error:
                refused[name] = str(error)
                if answer.kind == "mismatch":
                    self._shunned[name] = ledger.round + AGAIN
        for name in outliers(uploads, ledger.norms, self.rules.norm_limit):
            refused[name] = "norm beyond the limit"
            del uploads[name]
        late = [name for name in chosen if name not in {*uploads, *lost, *refused}]
        for what, names in (("lost", dict.fromkeys(lost, "")), ("late", dict.fromkeys(late, "")), ("refused", refused)):
            for name, why in names.items():
                self.journal.event(what, round=ledger.round + 1, site=name, **({"why": why} if why else {}))
        to = {name: self.post.weigh(letter) for name, letter in letters.items()}
        wasted = sum(to[name] + sent[name] for name in chosen if name not in uploads)
        return Gathered(uploads, lost, late, refused, sum(sent.values()), sum(to.values()), wasted)

    def _count(self, gathered: Gathered, attempts: int) -> None:
        """Add up what came, and count it."""
        ledger, uploads = self.ledger, gathered.uploads
        ordered = sorted(uploads, key=lambda name: ledger.sites[name].number)
        server, means = self.arithmetic.aggregate(
            tensors(ledger.vectors), (uploads[name].vectors for name in ordered), len(ledger.sites)
        )
        spent = (
            self.arithmetic.models,
            gathered.bytes_up,
            gathered.bytes_down,
            sum(upload.gradients for upload in uploads.values()),
            gathered.wasted,
        )
        changed = {
            name: replace(ledger.sites[name], refused=gathered.refused.get(name, ""))
            for name in (*uploads, *gathered.refused)
        }
        for name in uploads:
            changed[name] = replace(changed[name], counted=gathered.uploads[name].ticket)
        after = replace(
            ledger.with_sites(changed),
            round=ledger.round + 1,
            totals=tuple(a + b for a, b in zip(ledger.totals, spent, strict=True)),
            norms=medians(uploads),
            vectors=arrays(server),
        )
        offline = ledger.sites.keys() - {*self._online()}
        groups = {"offline": offline, "lost": gathered.lost, "late": gathered.late, "refused": gathered.refused}
        words = {"active": ledger.numbers(ordered)} | {kind: ledger.numbers(list(n)) for kind, n in groups.items()}
        self.ledger = self.journal.count(after, {**words, "attempts": attempts}, {"server": server["theta"], **means})

    def _commit(self, ledger: Ledger) -> None:
        self.journal.commit(ledger)
        self.ledger = ledger

    def settle(self) -> None:
        """Tell everybody who can be reached what was counted last; who cannot learns it from the next letter."""
        letters = {name: self._letter("settle", name, {}) for name in self._here()}
        for name, answer in self.post.exchange(letters, self.rules.welcome) if letters else ():
            if answer is not None and answer.kind != "done":
                self.journal.event("not settled", site=name, why=_why(answer))

    def resync(self, without: Sequence[str] = ()) -> None:
        """Make the server's state anew from the states of all sites, of which one that lost its own starts afresh;
        sites in `without` are struck off. Nothing is changed unless all others answer."""
        if unknown := set(without) - self.ledger.sites.keys():
            raise InputError(f"resync: {min(unknown)} is no site of this federation")
        kept = replace(self.ledger, sites={n: s for n, s in self.ledger.sites.items() if n not in without})
        missing = kept.sites.keys() - {*self._online()}
        if missing or not kept.sites:
            raise FeddynError(
                f"resync: {', '.join(sorted(missing, key=natural)) or 'everybody'} cannot be reached; every site must "
                "answer, or be struck off (without = its name)"
            )
        letters, states = {name: self._letter("resync", name, {}) for name in kept.sites}, {}
        answers = dict(self.post.exchange(letters, self.rules.welcome))
        for name, letter in letters.items():
            answer = answers.get(name)
            try:
                if answer is not None and answer.kind == "mismatch":
                    continue
                if answer is None or answer.kind != "done" or ticket_in(answer) != letter.words["ticket"]:
                    raise BadLetter("no answer" if answer is None else _why(answer))
                states[name] = same(answer.vectors, self.arithmetic.state)
            except BadLetter as error:
                raise FeddynError(f"resync: {name} did not give its state ({error}); nothing is changed") from None
        lost = [name for name in kept.sites if name not in states]
        fresh = self._welcome(lost)
        if len(fresh) < len(lost):
            raise FeddynError(f"resync: {min(set(lost) - fresh.keys())} did not join again; nothing is changed")
        server = tensors(kept.vectors)
        states |= {name: arrays(self.arithmetic.algorithm.device(server["theta"])) for name in fresh}
        kept = kept.with_sites({name: replace(site, number=kept.sites[name].number) for name, site in fresh.items()})
        rebuilt = self.arithmetic.rebuild(server, ((state, kept.share(name)) for name, state in states.items()))
        self._commit(replace(kept, vectors=arrays(rebuilt)))
        self._shunned.clear()
        self.journal.event("resync", afresh=sorted(fresh), without=sorted(without))


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts site-2 before site-10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def _why(answer: Letter) -> str:
    """What a site says of its failure, which is a fixed word or somebody's mischief."""
    why = answer.words.get("why", answer.kind)
    return re.sub(r"[^ -~]", "?", str(why))[:32]


def _census(ledger: Ledger) -> Census:
    return Census(len(ledger.sites), ledger.samples)
