"""A site's side of the protocol: it answers letters, and remembers nothing but what is in its store."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, final

from feddyn import __version__
from feddyn.errors import DivergenceError, FeddynError
from feddyn.flower.letters import BadLetterError, Letter, Vectors, count_in, name, own, positive_in, ticket_in
from feddyn.flower.store import DeviceStore, MismatchError

LOG = logging.getLogger("flwr")
"""Flower shows this log at the site."""


SAID = ("mismatch", "bad letter", "diverged", "refused", "error")
"""What a site says where it has no upload to send; its log has more of it."""


class Trained(NamedTuple):
    """What came of a round: the site's next state, its upload, how many gradients of samples it took, and the path that
    the server needs to read the upload, if it does."""

    state: Vectors
    upload: Vectors
    gradients: int
    path: float | None = None


class Worker(Protocol):
    """What a site computes; nothing of it is needed to confirm or to refuse."""

    @property
    def key(self) -> str:
        """Stands for the method, and the model's size and type: the server's must be the same."""

    @property
    def samples(self) -> int:
        """n_k."""

    def begin(self, hello: Vectors) -> Vectors:
        """The site's state before its first round: of the server's model, and of theta^0 where that is another one."""

    def train(self, down: Vectors, state: Vectors, share: float, seed: int, round: int, number: int) -> Trained:
        """One round, counted from 0, of the device with this number."""


@final
class Device:
    """A site that keeps its states below `root` and computes with what `worker` makes."""

    def __init__(self, root: Path, worker: Callable[[], Worker]):
        self.root, self._worker = root, worker

    def answer(self, letter: Letter) -> Letter:
        """The answer to a letter, whatever that is."""
        try:
            return self._answer(letter)
        except MismatchError:
            LOG.error(
                "this site does not hold the state that the server counted (ticket %s): restore the backup of %s, or "
                "have the operator run a resync",
                letter.words.get("counted"),
                self.root,
            )
            return Letter("mismatch", {})
        except BadLetterError as error:
            LOG.error("a letter of the server's was refused: %s", error)
            return Letter("failed", {"why": "bad letter"})
        except DivergenceError as error:
            LOG.error("%s", error)
            return Letter("failed", {"why": "diverged"})
        except FeddynError as error:
            LOG.error("%s", error)
            return Letter("failed", {"why": "refused"})
        except Exception:  # its text may have a path or data in it, so the server gets a fixed word
            LOG.exception("the site failed")
            return Letter("failed", {"why": "error"})

    def _answer(self, letter: Letter) -> Letter:
        store = DeviceStore(self.root, name(letter, "federation"), name(letter, "site"))
        if (why := letter.words.get("refused")) and why not in SAID:
            LOG.warning("the server refused the last upload of %s: %s", store.site, why)
        if letter.kind == "hello":
            return self._hello(letter, store)
        counted = ticket_in(letter, "counted")
        state = store.settle(counted)
        if letter.kind == "train":
            return self._train(letter, store, state, counted)
        if store.computed(counted):
            LOG.warning(
                "the last upload of %s was not counted (late, lost or refused): it goes on from before", store.site
            )
        if letter.kind == "settle":
            return Letter("done", {"feddyn": __version__})
        if letter.kind == "resync":
            return Letter("done", {"ticket": ticket_in(letter)}, own(state))
        raise BadLetterError("bad kind")

    def _hello(self, letter: Letter, store: DeviceStore) -> Letter:
        ticket, worker = ticket_in(letter), self._worker()
        about = {"samples": worker.samples, "key": worker.key, "feddyn": __version__}  # before anything is kept
        store.write(ticket, "", worker.begin(dict(letter.vectors)))
        LOG.info("%s joins with %d samples", store.site, worker.samples)
        return Letter("done", {"ticket": ticket, **about})

    def _train(self, letter: Letter, store: DeviceStore, state: Vectors, counted: str) -> Letter:
        ticket, share = ticket_in(letter), positive_in(letter, "share")
        seed, round, number = (count_in(letter, key) for key in ("seed", "round", "number"))
        trained = self._worker().train(dict(letter.vectors), state, share, seed, round, number)
        store.write(ticket, counted, trained.state)
        LOG.info("%s trained in round %d, and sends its upload", store.site, round + 1)
        path = {} if trained.path is None else {"path": trained.path}
        return Letter("done", {"ticket": ticket, "gradients": trained.gradients, **path}, trained.upload)
