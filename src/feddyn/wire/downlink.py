"""Downloads: what the server of a method makes of a broadcast that was compressed.

Devices have w where the server has theta. What the method takes for what devices were sent becomes w on the server too
(`as_sent`), and what they were not sent is added to what would otherwise forget it (`carry`); see docs/compression.md.
"""

from typing import NamedTuple

from feddyn.algorithms.base import Algorithm, State, Vector
from feddyn.errors import InputError
from feddyn.wire.base import Compressor, Sizes, models_broadcast
from feddyn.wire.common import Broadcast, CommonModel


class Sent(NamedTuple):
    """What devices have of a broadcast, what they have not, and the server as it is where it takes that for its own."""

    down: State
    server: State
    unsent: State
    broadcast: Broadcast | None

    @property
    def norms(self) -> dict[str, float]:
        """Where it was compressed: how long what was sent of all that was wanted is, and what was not."""
        if self.broadcast is None:
            return {}
        parts = {"sent": self.broadcast.changes, "unsent": self.unsent}
        return {name: sum(float(v.norm()) ** 2 for v in part.values()) ** 0.5 for name, part in parts.items()}


def common_model(
    algorithm: Algorithm, compressor: Compressor, sizes: Sizes, initial: Vector, devices: int
) -> CommonModel:
    """The common model of a federation that begins at `initial`; refused for a method that does not say what its server
    takes for sent."""
    if algorithm.as_sent is None:
        raise InputError(
            f"{type(algorithm).__name__}: broadcasts can only be compressed where the method says which vectors of its "
            "server `aggregate` takes for what devices were sent: as_sent = ('theta',), or () for none; and by carries "
            "which ones are made of devices' models alone (docs/compression.md)"
        )
    start = algorithm.broadcast(algorithm.server(initial))
    return CommonModel(compressor, sizes, start, devices, models_broadcast(algorithm, initial))


def send(algorithm: Algorithm, common: CommonModel | None, server: State, seed: int) -> Sent:
    """The broadcast of a round, as it is where there is no common model; nothing is kept of it until it is
    committed."""
    wanted = algorithm.broadcast(server)
    if common is None:
        return Sent(wanted, server, {}, None)
    found = common.broadcast(wanted, seed)
    server = server | {name: found.down[name] for name in algorithm.as_sent or ()}
    return Sent(found.down, server, {name: wanted[name] - found.down[name] for name in found.moved}, found)


def carried(algorithm: Algorithm, sent: Sent, server: State) -> State:
    """The server's next state, with what devices were not sent."""
    return algorithm.carry(server, sent.unsent) if sent.broadcast else server
