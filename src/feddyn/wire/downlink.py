"""Downloads: what the server of a method makes of a broadcast that was compressed.

Devices have w where the server has theta. What the method takes for what devices were sent becomes w on the server too
(`as_sent`), and what they were not sent is added to what would otherwise forget it (`carry`); see docs/compression.md.
"""

from typing import NamedTuple

from feddyn.algorithms.base import Algorithm, State
from feddyn.wire.common import Broadcast, CommonModel


class Sent(NamedTuple):
    """What devices have of a broadcast, what they have not, and the server as it is where it takes that for its own."""

    down: State
    server: State
    unsent: State
    broadcast: Broadcast | None


def send(algorithm: Algorithm, common: CommonModel | None, server: State, seed: int) -> Sent:
    """The broadcast of a round, as it is where there is no common model; nothing is kept of it until it is
    committed."""
    wanted = algorithm.broadcast(server)
    if common is None:
        return Sent(wanted, server, {}, None)
    found = common.broadcast(wanted, seed)
    server = server | {name: found.down[name] for name in algorithm.as_sent}
    return Sent(found.down, server, {name: wanted[name] - found.down[name] for name in found.moved}, found)


def carried(algorithm: Algorithm, sent: Sent, server: State) -> State:
    """The server's next state, with what devices were not sent."""
    return algorithm.carry(server, sent.unsent) if sent.broadcast else server
