r"""Downloads: the server and all devices hold the same model w, and what is broadcast are compressed differences to it.

    q = Q'(theta - w) ,   w <- w + q ;     devices, and the server, use w wherever the method has theta

w begins at theta^0, which everybody has. The sum of all q is kept in float64 apart from theta^0: multiples of powers of
two, as `Quantized` sends them, are added without rounding. So a device that was away is sent the sum of what it missed,
whose numbers are small, or what it missed one by one, whichever is shorter, or after a long time the whole of
w - theta^0; all of them lead to the same bits.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from feddyn.algorithms.base import State, Vector
from feddyn.errors import FeddynError, InputError
from feddyn.wire.base import CHECKSUM, Compressor, Sizes, checksum
from feddyn.wire.digits import Reader, count, refusal
from feddyn.wire.exact import read_exactly, write_exactly

KEPT = 32
"""Broadcasts that the server remembers, as messages. A device that was away for longer is sent w whole."""
REMEMBERED = 128 << 20
"""Bytes of memory for the sums of broadcasts before each of the newest messages; those of others are computed again."""
APART, SUM, WHOLE = 3, 4, 5
"""What a device is sent: all that it missed one by one, the sum of it, or w - theta^0 (0 to 2: as the version before
this one sent it)."""


class Message(NamedTuple):
    """A broadcast vector as it was sent, whether taking it off the sum of all until then gives the sum before it to the
    bit, and that sum (None: it is computed so)."""

    data: bytes
    exact: bool
    before: Vector | None = None


class Broadcast(NamedTuple):
    """A broadcast: what devices have of it, the sums of all until then, its own parts of these, and the messages by
    name."""

    down: State
    moved: dict[str, Vector]
    changes: dict[str, Vector]
    messages: dict[str, Message]


class CommonModel:
    """What all devices that are up to date hold; `known` is how many broadcasts each device has heard. (A deployment,
    whose sites come and go, has that in its ledger, and no devices here.)

    What is not named, such as a number, is sent as it is; without names, all that is not of the model's size.
    """

    def __init__(
        self, compressor: Compressor, sizes: Sizes, start: State, devices: int, names: Collection[str] | None = None
    ):
        self.compressor, self.sizes, self.start = compressor, sizes, start
        self.rounds, self.known = 0, np.zeros(devices, np.int64)
        if names is None:
            names = [name for name, vector in start.items() if vector.numel() == sum(sizes)]
        self.moved = unmoved(names, start)
        self.history: list[dict[str, Message]] = []

    def broadcast(self, wanted: State, seed: int) -> Broadcast:
        """Send what brings the common model nearer to what the server wants devices to have; nothing is kept of it
        until it is committed."""
        down, moved, changes, messages = dict(wanted), {}, {}, {}
        for number, (name, before) in enumerate(self.moved.items()):
            start, target = self.start[name], wanted[name]
            data = self.compressor.encode(target - common(start, before), self.sizes, seed + number)
            change = changes[name] = self.compressor.decode(data, self.sizes).to(before)
            after = before + change
            moved[name], messages[name] = after, Message(data, torch.equal(after - change, before), before.cpu())
            down[name] = common(start, after)
        return Broadcast(down, moved, changes, messages)

    def lengths(self, sent: Broadcast, devices: Sequence[int]) -> list[int]:
        """How many bytes each of some devices is sent, so that it has heard this broadcast too."""
        plain = sum(vector.nbytes for name, vector in sent.down.items() if name not in self.moved)
        missed = [self.rounds + 1 - int(self.known[k]) for k in devices]
        parts = [self.messages(name, sent, set(missed)) for name in self.moved] if missed else []
        return [plain + sum(len(part[count]) for part in parts) for count in missed]

    def messages(self, name: str, sent: Broadcast, missed: Collection[int]) -> dict[int, bytes]:
        """What a device is sent of a vector that has missed so many broadcasts, with this one."""
        history = [*(messages[name] for messages in self.history), sent.messages[name]]
        now = before = sent.moved[name].cpu()
        found, apart, length, exact = dict[int, bytes](), list[bytes](), 0, True
        for number, message in enumerate(reversed(history[-max(missed) :]), 1):
            apart += [message.data, count(len(message.data))]
            length += len(apart[-1]) + len(apart[-2])
            exact &= message.exact
            if exact and max(missed) > 1:
                known = message.before
                before = before - self.compressor.decode(message.data, self.sizes) if known is None else known
            if number in missed:
                total = None
                if exact and number > 1 and torch.equal(before + (added := now - before), now):
                    total = write_exactly(added.numpy(), self.sizes)
                if total is not None and len(total) < length:
                    found[number] = _sealed(SUM, number, total)
                else:
                    found[number] = _sealed(APART, number, b"".join(reversed(apart)))
        if rest := set(missed) - set(found):
            whole = _sealed(WHOLE, 0, write_exactly(now.numpy(), self.sizes))
            found |= dict.fromkeys(rest, whole)
        return found

    def commit(self, sent: Broadcast, devices: Sequence[int]) -> None:
        """Make a broadcast the last one, which these devices have heard."""
        self.rounds += 1
        self.moved, self.history = sent.moved, [*self.history, sent.messages][-KEPT:]
        age = REMEMBERED // (1 + sum(vector.nbytes for vector in self.moved.values()))
        if age < len(self.history):
            old = self.history[-1 - age]
            old |= {name: message._replace(before=None) for name, message in old.items()}
        self.known[list(devices)] = self.rounds

    def vectors(self) -> dict[str, Vector]:
        """All that the next broadcast depends on."""
        found = {"known": torch.from_numpy(self.known), **{f"moved.{name}": v for name, v in self.moved.items()}}
        for age, messages in enumerate(self.history):
            for name, message in messages.items():
                data = np.frombuffer(message.data + bytes([message.exact]), np.uint8)
                found[f"message.{name}.{age}"] = torch.from_numpy(data.copy())
        return found

    def restore(self, rounds: int, vectors: Mapping[str, Vector]) -> None:
        """Go back to where `vectors` were taken, after so many broadcasts."""
        try:
            known = vectors["known"].numpy().astype(np.int64)
            moved = {name: vectors[f"moved.{name}"].to(before) for name, before in self.moved.items()}
            history = []
            for age in range(min(rounds, KEPT)):
                data = {name: vectors[f"message.{name}.{age}"].numpy().tobytes() for name in self.moved}
                history.append({name: Message(text[:-1], bool(text[-1])) for name, text in data.items()})
            if known.shape != self.known.shape or any(moved[name].shape != v.shape for name, v in self.moved.items()):
                raise ValueError("of another shape")
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise FeddynError(f"the checkpoint's broadcasts are not those of this run ({error})") from None
        self.rounds, self.known, self.moved, self.history = rounds, known, moved, history


def unmoved(names: Collection[str], start: State) -> dict[str, Vector]:
    """w - theta^0 before the first broadcast, of the vectors that are compressed."""
    return {name: torch.zeros_like(start[name], dtype=torch.float64) for name in names}


def common(start: Vector, moved: Vector) -> Vector:
    """w, of the model's type."""
    return (start + moved).to(start)


def hear(compressor: Compressor, sizes: Sizes, moved: Vector, message: bytes) -> Vector:
    """A device's own w - theta^0 after a message."""
    body = message[:-CHECKSUM]
    if len(message) < CHECKSUM + 2 or message[-CHECKSUM:] != checksum(body):
        raise InputError("the message was cut off or altered: send it again")
    reader = Reader(body)
    kind, number = reader.byte(), reader.byte()
    if kind == APART:
        for _ in range(number):
            data = reader.take(reader.count(len(body))).tobytes()
            moved = moved + compressor.decode(data, sizes).to(moved)
    elif kind in (SUM, WHOLE):
        found = torch.from_numpy(read_exactly(reader, sizes)).to(moved)
        moved = moved + found if kind == SUM else found
    else:
        raise refusal(f"a broadcast of the kind {kind}")
    reader.end()
    return moved


def _sealed(kind: int, number: int, body: bytes) -> bytes:
    """A message to a device, with its checksum."""
    body = bytes([kind, number]) + body
    return body + checksum(body)
