"""Sites that join, and a server's state made anew from theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from feddyn.errors import FeddynError, InputError
from feddyn.flower.arithmetic import arrays, tensors
from feddyn.flower.broadcasts import START
from feddyn.flower.desk import Desk, census, natural, why
from feddyn.flower.ledger import Ledger, Site
from feddyn.flower.letters import BadLetterError, Letter, Vectors, count_in, ticket_in
from feddyn.flower.uploads import bounded, same

NUMBERED = ("active", "offline", "lost", "late", "refused")
"""The parts of a round's line that have numbers of sites."""


def admit(desk: Desk) -> None:
    """Let sites join that are not known yet, if they have the same method and model."""
    strangers = [name for name in desk.online() if name not in desk.ledger.sites and desk.due(name)]
    if joined := _welcome(desk, strangers):
        _write_in(desk, joined)


def number(desk: Desk) -> None:
    """Before the first round, number the sites in the order of their names, whoever came first."""
    ledger, ordered = desk.ledger, sorted(desk.ledger.sites, key=natural)
    if [ledger.sites[name].number for name in ordered] != list(range(len(ordered))):
        desk.commit(ledger.with_sites({name: replace(ledger.sites[name], number=i) for i, name in enumerate(ordered)}))


def resync(desk: Desk, without: Sequence[str] = ()) -> None:
    """Make the server's state anew from the states of all sites, of which one that lost its own starts afresh; sites in
    `without` are struck off. Nothing is changed unless all others answer."""
    if unknown := set(without) - desk.ledger.sites.keys():
        raise InputError(f"resync: {min(unknown)} is no site of this federation")
    if present := set(without) & {*desk.online()}:
        raise InputError(f"resync: {min(present)} is online, and would join again at once: unregister its key first")
    kept = replace(desk.ledger, sites={name: s for name, s in desk.ledger.sites.items() if name not in without})
    missing = kept.sites.keys() - {*desk.online()}
    if missing or not kept.sites:
        raise FeddynError(
            f"resync: {', '.join(sorted(missing, key=natural)) or 'everybody'} cannot be reached; every site must "
            "answer, or be struck off by its name"
        )
    states = _states(desk, kept)
    lost = [name for name in kept.sites if name not in states]
    fresh = _welcome(desk, lost)
    if len(fresh) < len(lost):
        raise FeddynError(f"resync: {min(set(lost) - fresh.keys())} did not join again; nothing is changed")
    server = tensors(kept.vectors)
    states |= {name: arrays(desk.arithmetic.algorithm.device(server["theta"])) for name in fresh}
    kept = kept.with_sites({name: replace(site, number=kept.sites[name].number) for name, site in fresh.items()})
    rebuilt = desk.arithmetic.rebuild(server, ((state, kept.share(name)) for name, state in states.items()))
    desk.commit(replace(kept, vectors=arrays(rebuilt)))
    desk.pardon()
    desk.journal.event("resync", afresh=sorted(fresh), without=sorted(without))


def _states(desk: Desk, ledger: Ledger) -> dict[str, Vectors]:
    """The states of all sites that hold what was counted; those that do not are left out."""
    letters = {name: desk.letter("resync", name) for name in ledger.sites}
    answers, states = dict(desk.post.exchange(letters, desk.rules.welcome)), {}
    for name, letter in letters.items():
        answer = answers.get(name)
        if answer is not None and answer.kind == "mismatch":
            continue
        try:
            found = same(_done(answer, letter).vectors, desk.arithmetic.state)
            states[name] = bounded(found, desk.arithmetic.limit(len(ledger.sites)))
        except BadLetterError as error:
            raise FeddynError(f"resync: {name} did not give its state ({error}); nothing is changed") from None
    return states


def _welcome(desk: Desk, names: Sequence[str]) -> dict[str, Site]:
    """Have sites make a first state at the server's model; those that did. They have not heard a broadcast."""
    vectors = {"theta": desk.ledger.vectors["theta"]}
    start = desk.ledger.wire.get(START, vectors["theta"])
    if not np.array_equal(start, vectors["theta"]):
        vectors[START] = start
    letters = {name: desk.letter("hello", name, vectors) for name in names}
    joined = {}
    for name, answer in desk.post.exchange(letters, desk.rules.welcome) if letters else ():
        try:
            done = _done(answer, letters[name])
            if done.words.get("key") != desk.arithmetic.key:
                raise BadLetterError("another method or model")
            joined[name] = Site(-1, count_in(done, "samples", 1), ticket_in(done))
            desk.heard(name)
            desk.compare(name, done)
        except BadLetterError as error:
            desk.journal.once("not admitted", site=name, why=str(error))
    for name in letters.keys() - joined.keys():
        desk.shun(name)
    return joined


def _done(answer: Letter | None, letter: Letter) -> Letter:
    """An answer that is one to this letter and says that it was done."""
    if answer is None or answer.kind != "done":
        raise BadLetterError(why(answer))
    if ticket_in(answer) != letter.words["ticket"]:
        raise BadLetterError("another ticket")
    return answer


def _write_in(desk: Desk, joined: Mapping[str, Site]) -> None:
    before, past = desk.ledger, (line[kind] for line in desk.journal.history for kind in NUMBERED if kind in line)
    # a number that a site had which was struck off would credit the new one with its rounds
    numbers = {site.number for site in before.sites.values()}.union(*past)
    first = 1 + max(numbers, default=-1)
    ordered = sorted(joined, key=natural)
    fresh = {name: replace(joined[name], number=first + i) for i, name in enumerate(ordered)}
    after = before.with_sites(fresh)
    if before.round:
        server = desk.arithmetic.algorithm.admit(tensors(before.vectors), census(before), census(after))
        after = replace(after, vectors=arrays(server))
    desk.commit(after)
    for name, site in fresh.items():
        desk.journal.event("joined", site=name, number=site.number, samples=site.samples)
