"""What a compressor is: a pure map from vectors to messages, and from messages to vectors.

A message is bytes, ends with a checksum, and stands for a vector of the model's size. The vector that is read is not
the one that was written, but nearer to it than zero is:

    E ||Q(v) - v||^2  <=  (1 - delta) ||v||^2 ,   delta > 0 ,

which is all that the rule 'both sides use what was really sent' asks for (docs/compression.md).
"""

import zlib
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from feddyn.algorithms.base import Algorithm, Vector
from feddyn.errors import InputError
from feddyn.wire.digits import Reader, refusal

Numbers: TypeAlias = npt.NDArray[np.floating[Any]]
"""Floats of 32 or 64 bits."""
Sizes: TypeAlias = tuple[int, ...]
"""The numbers of parameters of a model's layers, in their order: how a vector is cut where scales are `per` layer."""
CHECKSUM = 4
CODED = 1
"""The first byte of a message that a compressor wrote (0: as the version before did). Where the vector as it is
would not be longer, that is sent, after the number of bytes of each of its numbers."""


class Compressor(ABC):
    """Turns vectors into shorter messages, and messages into vectors that are close to them.

    Final classes implement it; none extends another. Equal compressors read each other's messages.
    """

    @abstractmethod
    def write(self, vector: Numbers, sizes: Sizes, seed: int) -> bytes:
        """The message of a vector of finite numbers, of float32 or float64; `seed` is for what is random in it."""

    @abstractmethod
    def read(self, reader: Reader, sizes: Sizes) -> Numbers:
        """The vector that a message stands for."""

    def encode(self, vector: Vector, sizes: Sizes, seed: int = 0) -> bytes:
        """A message with its checksum."""
        if vector.dim() != 1 or vector.numel() != sum(sizes):
            raise InputError(f"a vector of shape {tuple(vector.shape)} is not one of the {sum(sizes)} parameters")
        if vector.dtype not in (torch.float32, torch.float64):
            raise InputError(f"a vector of {vector.dtype} cannot be compressed: train the model in float32 or float64")
        numbers = vector.detach().cpu().numpy()
        if not np.isfinite(numbers).all():
            raise InputError("a vector with a number that is none (NaN or infinite) cannot be sent: has it diverged?")
        body = bytes([CODED]) + self.write(numbers, sizes, seed)
        if len(body) >= 1 + numbers.nbytes:
            body = bytes([numbers.itemsize]) + numbers.astype(f"<f{numbers.itemsize}").tobytes()
        return body + checksum(body, repr(self))

    def decode(self, message: bytes, sizes: Sizes) -> Vector:
        """The vector that a message stands for, in a type that holds it exactly; one that was not encoded by an equal
        compressor, or was altered or cut off since, is refused."""
        body = message[:-CHECKSUM]
        if len(message) < CHECKSUM or message[-CHECKSUM:] != checksum(body, repr(self)):
            raise InputError("the message was cut off or altered, or is of another compressor: send it again")
        reader = Reader(body)
        vector: Numbers
        if (kind := reader.byte()) == CODED:
            vector = self.read(reader, sizes)
        elif kind in (4, 8):
            vector = reader.floats(sum(sizes), f"f{kind}")
        else:
            raise refusal(f"a message of the kind {kind}")
        reader.end()
        return torch.from_numpy(vector)

    def sent(self, vector: Vector, sizes: Sizes, seed: int = 0) -> tuple[Vector, bytes]:
        """What arrives of a vector, of its type and on its device, and the message that carried it."""
        message = self.encode(vector, sizes, seed)
        return self.decode(message, sizes).to(vector), message


def checksum(body: bytes, name: str = "") -> bytes:
    """The end of a message, which another message or another sender's name do not have."""
    return zlib.crc32(body, zlib.crc32(name.encode())).to_bytes(CHECKSUM, "little")


def models_broadcast(algorithm: Algorithm, theta: Vector) -> tuple[str, ...]:
    """Which vectors of a broadcast are of the model's size; numbers beside them are sent as they are.

    >>> from feddyn.algorithms import AdaBest
    >>> models_broadcast(AdaBest(0.1, 0.5), torch.zeros(1))
    ('theta',)
    """
    if theta.numel() == 1:  # where a model is one number, only a larger one tells the two apart
        theta = theta.repeat(2)
    down = algorithm.broadcast(algorithm.server(theta))
    return tuple(name for name, vector in down.items() if vector.numel() == theta.numel())
