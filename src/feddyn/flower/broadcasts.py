"""What the server of a federation broadcasts, compressed or not; the write of the ledger is what counts it as heard.

Sites hold the common model w as it was at the ticket that was counted last, to which they fall back, and the ledger
knows how many broadcasts that was (`heard`). So each is sent what it missed since then, also after its upload was lost,
and an attempt at a round that is repeated leaves no trace.
"""

from collections.abc import Mapping
from copy import copy
from typing import final

from feddyn.algorithms.base import State
from feddyn.flower.arithmetic import Arithmetic, arrays, tensors
from feddyn.flower.letters import Array, Vectors, message
from feddyn.wire.downlink import Sent, common_model, send

START = "start"
"""theta^0, in the ledger, at a site and in a letter to a site that joins late."""


@final
class Broadcasts:
    """The broadcasts of a federation that begins, or that stands after `round` of them where `kept` was kept."""

    def __init__(self, arithmetic: Arithmetic, round: int = 0, kept: Mapping[str, Array] | None = None):
        self._algorithm, self._common, self._start = arithmetic.algorithm, None, arithmetic.initial
        if arithmetic.downlink is None:
            return
        vectors = tensors(kept or {})
        # a model of somebody's own may begin elsewhere in every session; theta^0 is that of the first
        self._start = vectors.get(START, self._start)
        self._common = common_model(self._algorithm, arithmetic.downlink, arithmetic.sizes, self._start, devices=0)
        if kept:
            self._common.restore(round, vectors)

    @property
    def kept(self) -> Vectors:
        """All that the next broadcast depends on besides the server's state."""
        return arrays({START: self._start, **self._common.vectors()}) if self._common else {}

    def send(self, server: State, seed: int) -> Sent:
        """A broadcast; nothing is kept of it."""
        return send(self._algorithm, self._common, server, seed)

    def parts(self, sent: Sent, missed: Mapping[str, int]) -> dict[str, Vectors]:
        """What each site is sent that missed so many broadcasts, with this one."""
        common, broadcast = self._common, sent.broadcast
        if common is None or broadcast is None:
            return dict.fromkeys(missed, arrays(sent.down))
        plain = arrays({name: vector for name, vector in sent.down.items() if name not in broadcast.moved})
        counts = set(missed.values())
        messages = {name: common.messages(name, broadcast, counts) for name in broadcast.moved} if counts else {}
        return {
            site: plain | {name: message(texts[count]) for name, texts in messages.items()}
            for site, count in missed.items()
        }

    def after(self, sent: Sent) -> "Broadcasts":
        """The broadcasts with this one, while these stay as they are: it is not counted yet."""
        found = copy(self)
        if self._common and sent.broadcast:
            found._common = copy(self._common)
            found._common.commit(sent.broadcast, ())
        return found
