"""What a server and its sites write to each other, whatever carries it: letters of a kind, with words and vectors.

    kind     server -> site                                    site -> server
    hello    federation, site, ticket, theta (, start)         done: ticket, samples, key, feddyn
    train    federation, site, counted, refused, ticket,       done: ticket, gradients, the upload
             share, round, number, seed, what is broadcast     or its message (, path)
    settle   federation, site, counted, refused                done: feddyn
    resync   federation, site, counted, refused                done: ticket, the site's state

Where broadcasts are compressed, theta^0 is the `start` of who joins later, and messages are sent instead of vectors of
the model's size; where uploads are, one `message` instead of all of them, and the `path` that the solver walked if the
method needs it. Messages are vectors of bytes.

`feddyn` is the version of this package that the site has. A site that does not hold the state that the server counted
answers `mismatch` and changes nothing. One that fails says so with a fixed word: texts of exceptions may have paths or
data in them.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.errors import InputError

Array: TypeAlias = npt.NDArray[Any]
Vectors: TypeAlias = dict[str, Array]
Words: TypeAlias = dict[str, str | int | float]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Of sites and federations, which become directories."""
TICKET = re.compile(r"\d{6}-\d{9}-[0-9a-f]{16}")
WIRE = "wire/"
"""Names of vectors that compression keeps beside a method's own begin so, at a site as in the ledger."""
MOST = 2**53
"""Counts that strangers send are below it."""


class Letter(NamedTuple):
    """A letter; an answer's kind is `done`, `mismatch` or `failed`."""

    kind: str
    words: Mapping[str, Any]
    vectors: Mapping[str, Array] = {}


class BadLetterError(ValueError):
    """A letter is not as it should be; its text is a fixed word and safe to send."""


def own(vectors: Mapping[str, Array]) -> Vectors:
    """A method's own vectors, of all that are kept."""
    return {name: vector for name, vector in vectors.items() if not name.startswith(WIRE)}


def beside(vectors: Mapping[str, Array]) -> Vectors:
    """What is kept beside a method's own vectors, by its short names."""
    return {name.removeprefix(WIRE): vector for name, vector in vectors.items() if name.startswith(WIRE)}


def together(vectors: Mapping[str, Array], more: Mapping[str, Array]) -> Vectors:
    """A method's own vectors and what is kept beside them, which `own` and `beside` take apart."""
    return {**vectors, **{WIRE + name: vector for name, vector in more.items()}}


def digest(text: str, vectors: Mapping[str, Array]) -> str:
    """A hash of a text and of vectors, for files that somebody counts on."""
    found = hashlib.sha256(text.encode())
    for key, vector in sorted(vectors.items()):
        found.update(f"{key} {vector.dtype} {vector.shape}".encode())
        found.update(np.ascontiguousarray(vector).tobytes())
    return found.hexdigest()


def message(data: bytes) -> Array:
    """A message as a vector."""
    return np.frombuffer(data, np.uint8)


def ticket(session: int, serial: int) -> str:
    """A new ticket. They sort as they were made, and 64 random bits keep two attempts at one thing apart."""
    return f"{session:06d}-{serial:09d}-{secrets.token_hex(8)}"


def order(of: str) -> str:
    """What tickets are compared by: which was made first."""
    return of[:16]


def name(letter: Letter, key: str) -> str:
    """A word that can be the name of a directory."""
    value = letter.words.get(key)
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise BadLetterError(f"bad {key}")
    return value


def ticket_in(letter: Letter, key: str = "ticket") -> str:
    """A word that is a ticket."""
    value = letter.words.get(key)
    if not isinstance(value, str) or not TICKET.fullmatch(value):
        raise BadLetterError(f"bad {key}")
    return value


def count_in(letter: Letter, key: str, least: int = 0) -> int:
    """A word that is a whole number of at least `least`."""
    value = letter.words.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < MOST:
        raise BadLetterError(f"bad {key}")
    return value


def positive_in(letter: Letter, key: str) -> float:
    """A word that is a finite number above 0."""
    value = letter.words.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < np.inf:
        raise BadLetterError(f"bad {key}")
    return float(value)


def require_name(what: str, value: str) -> str:
    """Refuse a name of the operator's that cannot be one of a directory."""
    if not NAME.fullmatch(value):
        raise InputError(
            f"{what} {value!r} cannot be used: it becomes a directory; use up to 64 letters, digits, '.', '_' and '-', "
            "the first a letter or digit"
        )
    return value
