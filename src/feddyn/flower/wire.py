"""Letters as Flower's messages, and Flower's grid as a post.

A vector goes as its raw little-endian numbers, a message as its bytes. What a message says of their type and shape are
claims of its sender: they must agree with the number of bytes before anything is made of them.
"""

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np
from flwr.app import Array as FlowerArray
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid
from flwr.superlink.grid.inmemory_grid import InMemoryGrid

from feddyn.errors import FeddynError
from feddyn.flower.letters import Array, BadLetterError, Letter
from feddyn.flower.post import Post

STYPE = "feddyn.raw"
TYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in ("<f4", "<f8", "|u1")}
WHO = "who"
"""Asks a simulated node, which nobody has named, for its partition."""
KINDS = ("hello", "settle", "resync", WHO)
"""Letters that are queries to Flower; `train` is its own."""
MOST = 16
"""Vectors and words that a letter has at most."""


def content(letter: Letter) -> RecordDict:
    """A letter as what a message carries."""
    arrays = {name: _packed(vector) for name, vector in letter.vectors.items()}
    words = ConfigRecord({"kind": letter.kind, **letter.words})
    return RecordDict({"words": words, "vectors": ArrayRecord(arrays)})


def letter_in(message: Message) -> Letter:
    """The letter that a message carries; raises `BadLetterError` where it carries none."""
    words, arrays = message.content.get("words"), message.content.get("vectors")
    if not isinstance(words, ConfigRecord) or not isinstance(arrays, ArrayRecord):
        raise BadLetterError("no letter")
    kind = words.get("kind")
    if not isinstance(kind, str) or max(len(words), len(arrays)) > MOST:
        raise BadLetterError("no letter")
    rest = {name: value for name, value in words.items() if name != "kind"}
    return Letter(kind, rest, {name: _unpacked(array) for name, array in arrays.items()})


def _packed(vector: Array) -> FlowerArray:
    plain = np.ascontiguousarray(vector, dtype=vector.dtype.newbyteorder("<"))
    return FlowerArray(plain.dtype.str, plain.shape, STYPE, plain.tobytes())


def _unpacked(array: FlowerArray) -> Array:
    kind, shape = TYPES.get(array.dtype), array.shape
    if array.stype != STYPE or kind is None:
        raise BadLetterError("another type")
    if len(shape) != 1 or len(array.data) != math.prod(shape) * kind.itemsize or min(shape) < 0:
        raise BadLetterError("another shape")
    vector: Array = np.frombuffer(array.data, dtype=kind)
    return vector.copy()


@final
class GridPost(Post):
    """Flower's grid, looked at every `poll` seconds. Sites go by the names that the operator registered them with; in
    Flower's simulation, where nobody did, by their partitions."""

    def __init__(self, grid: Grid, poll: float, welcome: float):
        self.grid, self.poll, self.welcome = grid, poll, welcome
        self._simulated = isinstance(grid, InMemoryGrid)
        self._partitions: dict[int, str] = {}
        self._nodes: dict[str, int] = {}

    def online(self) -> list[str]:
        nodes = {int(node.node_id): str(node.name) for node in self.grid.get_nodes()}
        if self._simulated:
            nodes = self._by_partition(list(nodes))
        self._nodes = {name: node for node, name in nodes.items()}
        return list(nodes.values())

    def _by_partition(self, nodes: list[int]) -> dict[int, str]:
        letters = {node: Letter(WHO, {}) for node in nodes if node not in self._partitions}
        for node, answer in self._send(letters, self.welcome) if letters else ():
            if answer is not None and isinstance(partition := answer.words.get("partition"), int):
                self._partitions[node] = f"partition-{partition}"
        return {node: self._partitions[node] for node in nodes if node in self._partitions}

    def exchange(self, letters: Mapping[str, Letter], seconds: float) -> Iterator[tuple[str, Letter | None]]:
        names = {self._nodes[name]: name for name in letters if name in self._nodes}
        for name in letters.keys() - self._nodes.keys():  # who was here a moment ago
            yield name, None
        for node, answer in self._send({node: letters[name] for node, name in names.items()}, seconds):
            yield names[node], answer

    def _send(self, letters: Mapping[int, Letter], seconds: float) -> Iterator[tuple[int, Letter | None]]:
        end = time.monotonic() + seconds
        waiting: dict[str, int] = {}
        for node, letter in letters.items():  # one by one, so that no more than one copy of the model is on its way
            sent = list(self.grid.push_messages([_message(node, letter, seconds)]))
            if not sent and not self._simulated:
                size = self.weigh(letter) / 1e6
                raise FeddynError(
                    f"the SuperLink refused a letter of {size:.1f} MB as too large: raise what it and the proxy before "
                    "it let through (client_max_body_size in nginx.conf)"
                )
            if sent and sent[0]:
                waiting[sent[0]] = node
            else:
                yield node, None
        while waiting and time.monotonic() < end:
            for reply in self.grid.pull_messages(list(waiting)):
                if (to := reply.metadata.reply_to_message_id) in waiting:
                    yield waiting.pop(to), _answer(reply)
            if waiting:
                time.sleep(self.poll)

    def weigh(self, letter: Letter) -> int:
        return sum(vector.nbytes for vector in letter.vectors.values())


def _message(node: int, letter: Letter, seconds: float) -> Message:
    kind = f"query.{letter.kind}" if letter.kind in KINDS else letter.kind
    return Message(content(letter), dst_node_id=node, message_type=kind, ttl=seconds)


def _answer(reply: Message) -> Letter | None:
    """None where Flower says that there is no answer."""
    if reply.has_error():
        return None
    try:
        return letter_in(reply)
    except BadLetterError as error:
        return Letter("failed", {"why": str(error)})
    except Exception:  # whatever a stranger's message makes of Flower's records
        return Letter("failed", {"why": "no letter"})


def answered(message: Message, letter: Letter) -> Message:
    """A site's answer to a message."""
    return Message(content(letter), reply_to=message)
