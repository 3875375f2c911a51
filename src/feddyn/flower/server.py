"""The server's side of the protocol: rounds that are closed and counted, whatever happens to anybody.

A round sends every chosen site a letter with a ticket of its own, takes the uploads that come in time and are as they
should be, adds them up, and writes the ledger: that counts it. With fewer uploads than `least` nothing is written, and
the round is repeated with new tickets. Sites learn from the next letter which of their states was counted.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, final

from feddyn.flower.arithmetic import Arithmetic, arrays, tensors
from feddyn.flower.broadcasts import Broadcasts
from feddyn.flower.desk import Desk, natural, why
from feddyn.flower.journal import Journal
from feddyn.flower.letters import BadLetterError, Letter, Vectors
from feddyn.flower.membership import admit, number, resync
from feddyn.flower.post import Post
from feddyn.flower.rules import Rules
from feddyn.flower.uploads import Upload, checked, medians, outliers
from feddyn.round.cost import Cost
from feddyn.round.participation import Sampler
from feddyn.round.seeds import integer
from feddyn.wire.downlink import Sent, carried

SEE = "{}: the site's own log says more"
REMEDIES = {"mismatch": "it has not the state that was counted: restore its folder `state`, or run a resync"}
"""What is to be done where a site answers, but not by an upload."""


class Gathered(NamedTuple):
    """What was broadcast in a round, what became of those who were asked, and the bytes it took."""

    sent: Sent
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
        self.desk = Desk(arithmetic, rules, post, journal)
        self.broadcasts = Broadcasts(arithmetic, self.desk.ledger.round, self.desk.ledger.wire)

    def run(self) -> None:
        """All rounds that are left; then the sites are told what was counted last."""
        while self.desk.ledger.round < self.rules.rounds:
            self.desk.next_turn()
            admit(self.desk)
            if self.desk.ledger.round == 0 and len(self.desk.ledger.sites) < self.rules.sites:
                self.journal.once("waiting for sites", least=self.rules.sites)
                time.sleep(self.rules.poll)
                continue
            if self.desk.ledger.round == 0:
                number(self.desk)
            self.round()
        self.settle()

    def resync(self, without: Sequence[str] = ()) -> None:
        """Make the server's state anew from those of all sites; see `membership.resync`."""
        resync(self.desk, without)

    def round(self) -> None:
        """One round, repeated until it is counted."""
        attempt, least = 0, self.rules.least
        while True:
            here = self.desk.here()
            chosen = self._choose(here, attempt) if len(here) >= least else []
            if len(chosen) >= least:
                gathered = self._gather(chosen)
                if len(gathered.uploads) >= least:
                    self._count(gathered, attempt + 1)
                    return
                self.journal.once(
                    "repeated", round=self.desk.ledger.round + 1, uploads=len(gathered.uploads), least=least
                )
            elif len(here) < least:
                alone = {"left_alone": names} if (names := self.desk.left_alone()) else {}
                self.journal.once("waiting for sites", least=least, **alone)
            else:
                self.journal.once("too few drawn", here=len(here), drawn=len(chosen), least=least)
            attempt += 1
            time.sleep(self.rules.poll)
            self.desk.next_turn()
            admit(self.desk)

    def settle(self) -> None:
        """Tell everybody who can be reached what was counted last; who cannot learns it from the next letter."""
        letters = {name: self.desk.letter("settle", name) for name in self.desk.here()}
        for name, answer in self.post.exchange(letters, self.rules.welcome) if letters else ():
            if answer is None:
                continue
            if answer.kind == "done":
                self.desk.compare(name, answer)
            else:
                self.journal.event("not settled", site=name, why=why(answer))

    def _choose(self, here: Sequence[str], attempt: int) -> list[str]:
        """Who is active: as in a simulation if everybody is here; a repeated round has a draw of its own."""
        rules, ledger = self.rules, self.desk.ledger
        if isinstance(p := rules.participation, Sequence):
            return [name for name in here if ledger.sites[name].number in p[ledger.round]]
        seed = rules.seed if attempt == 0 else integer(rules.seed, "participation", ledger.round, attempt)
        sampler = Sampler(min(p, len(here)) if isinstance(p, int) else p, len(here), rules.rounds, seed)
        return [here[i] for i in sampler.active(ledger.round)]

    def _gather(self, chosen: Sequence[str]) -> Gathered:
        """Ask sites to train, and take what is as it should be."""
        ledger, limit = self.desk.ledger, self.arithmetic.limit(len(self.desk.ledger.sites))
        seed = integer(self.rules.seed, "downlink", ledger.round)
        broadcast = self.broadcasts.send(tensors(ledger.vectors), seed)
        letters = self._letters(chosen, broadcast)

        def read(name: str) -> Callable[[Letter], Vectors]:
            return lambda answer: self.arithmetic.received(answer, broadcast.down, ledger.share(name))

        uploads: dict[str, Upload] = {}
        lost: list[str] = []
        failed: dict[str, str] = {}
        refused: dict[str, str] = {}
        sent = dict.fromkeys(chosen, 0)
        for name, answer in self.post.exchange(letters, self.rules.deadline):
            if answer is None:
                lost.append(name)
                continue
            sent[name] = self.post.weigh(answer)
            if answer.kind != "done":
                refused[name], failed[name] = why(answer), REMEDIES.get(answer.kind, SEE).format(why(answer))
                self.desk.shun(name, after=0 if answer.kind == "mismatch" else 1)
                continue
            self.desk.heard(name)
            try:
                uploads[name] = checked(answer, letters[name].words["ticket"], read(name), limit)
            except BadLetterError as error:
                refused[name] = str(error)
        for name in outliers(uploads, ledger.norms, self.rules.norm_limit):
            refused[name] = "norm beyond the limit"
            del uploads[name]
        late = [name for name in chosen if name not in {*uploads, *lost, *refused}]
        for kind, names in (("lost", lost), ("late", late), ("failed", failed), ("refused", refused.keys() - failed)):
            for name in sorted(names, key=natural):
                reason = {"why": failed.get(name, refused[name])} if name in refused else {}
                self.journal.once(kind, round=ledger.round + 1, site=name, **reason)
        to = {name: self.post.weigh(letter) for name, letter in letters.items()}
        wasted = sum(to[name] + sent[name] for name in chosen if name not in uploads)
        return Gathered(broadcast, uploads, lost, late, refused, sum(sent.values()), sum(to.values()), wasted)

    def _letters(self, chosen: Sequence[str], broadcast: Sent) -> dict[str, Letter]:
        ledger = self.desk.ledger
        missed = {name: ledger.round + 1 - ledger.sites[name].heard for name in chosen}
        common = {"seed": self.rules.seed, "round": ledger.round}
        return {
            name: self.desk.letter(
                "train", name, down, share=ledger.share(name), number=ledger.sites[name].number, **common
            )
            for name, down in self.broadcasts.parts(broadcast, missed).items()
        }

    def _count(self, gathered: Gathered, attempts: int) -> None:
        """Add up what came, and count it."""
        ledger, uploads, refused = self.desk.ledger, gathered.uploads, gathered.refused
        server, means = self.arithmetic.aggregate(
            gathered.sent.server, [upload.vectors for upload in uploads.values()], len(ledger.sites)
        )
        server = carried(self.arithmetic.algorithm, gathered.sent, server)
        broadcasts, round = self.broadcasts.after(gathered.sent), ledger.round + 1
        gradients = sum(upload.gradients for upload in uploads.values())
        spent = Cost(self.arithmetic.models, gathered.bytes_up, gathered.bytes_down, gradients, gathered.wasted)
        counted = {
            name: replace(ledger.sites[name], counted=upload.ticket, refused="", heard=round)
            for name, upload in uploads.items()
        }
        told = {name: replace(ledger.sites[name], refused=reason) for name, reason in refused.items()}
        after = replace(
            ledger.with_sites({**counted, **told}),
            round=round,
            totals=ledger.totals.plus(spent),
            norms=medians(uploads),
            vectors=arrays(server),
            wire=broadcasts.kept,
        )
        offline = [name for name in ledger.sites if name not in self.desk.online()]
        groups = {"active": uploads, "offline": offline, "lost": gathered.lost, "late": gathered.late}
        line = {kind: ledger.numbers(names) for kind, names in {**groups, "refused": refused}.items()}
        norms = {name: float(vector.norm()) for name, vector in server.items()}
        models = {"server": server["theta"], **means}
        words = {**line, "attempts": attempts, "norms": norms}
        words |= {"broadcast": lengths} if (lengths := gathered.sent.norms) else {}
        self.desk.ledger = self.journal.count(after, words, models)
        self.broadcasts = broadcasts
