r"""Uploads: a device sends Q(theta_k - theta), and both sides use what was really sent.

The method is handed the model that the server sees, theta + Q(theta_k - theta), in the place of theta_k, and computes
the device's next state and its upload from it. A method that `remembers_unsent` has what was not sent in that state,
and asks for it again (for FedDyn this is EF21 in the dual, see docs/compression.md): a second memory of it would count
it twice. Devices of all other methods are given one, the classical error feedback:

    u_k = Q(theta_k - theta + e_k) ,   e_k <- theta_k - theta + e_k - u_k .

Everything else that such a method uploads (SCAFFOLD's control variates) the server computes from theta_k, what it sent,
and a number or two. It does not know the device's state, and need not: such an upload does not depend on it, so that of
a device that was never active does as well.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from feddyn.algorithms.base import Algorithm, Scalar, Solution, State, Vector
from feddyn.errors import InputError
from feddyn.wire.base import Compressor, Sizes

TRIED = (0.5, 1.75)
"""Shares with which it is tried whether a method's upload can be made of the model."""


class Upload(NamedTuple):
    """The models that the server sees, what was not sent, the bytes of the uploads, and the messages among them; a row
    or an entry a device."""

    seen: Vector
    unsent: Vector
    lengths: list[int]
    messages: list[bytes]


class Uplink:
    """How devices of a method upload: `feedback` says whether what was not sent is kept for them."""

    def __init__(self, compressor: Compressor, algorithm: Algorithm, theta: Vector, sizes: Sizes):
        self.private = _measured_in_private(algorithm, theta)
        """Whether what uploads are measured from depends on the device's state, so that a server of real devices, which
        does not have that, could not read them."""
        self.compressor, self.algorithm, self.sizes = compressor, algorithm, sizes
        self._fresh, down = algorithm.device(theta), algorithm.broadcast(algorithm.server(theta))
        if algorithm.remembers_unsent is None and self._fresh:
            raise InputError(
                f"{type(algorithm).__name__}: uploads can only be compressed where the method says whether a device's "
                "state, computed from what the server sees, asks again for what was not sent: remembers_unsent = True, "
                "as in FedDyn, or False (docs/compression.md)"
            )
        self.feedback = not algorithm.remembers_unsent
        upload = self.upload(down, 1.0, Solution(theta, 1.0))
        plain = not self._fresh or all(vector is theta for vector in upload.values())
        self.rounds_apart = not (self.private or plain)
        """Whether an upload that is computed with the device's state may differ in the last bits from the server's own,
        which is computed without it."""
        numbers = [vector for vector in upload.values() if vector.numel() != theta.numel()]
        self.beside = sum(vector.nbytes for vector in numbers) + algorithm.needs_path * theta.itemsize
        """Bytes of the numbers that are sent beside the vector."""

    def reference(self, down: State, device: State, start: Vector, path: Scalar | None) -> Vector:
        """What the models of devices that began at `start` and walked a `path` are measured from."""
        found = self.algorithm.reference(down, device, path)
        return start if found is None else found

    def send(self, reference: Vector, theta: Vector, error: Vector | None, seeds: Sequence[int]) -> Upload:
        """Send what devices found, from the models that they are measured from."""
        wanted = theta - reference if error is None else theta - reference + error
        rows = wanted.reshape(len(seeds), -1)
        messages = [self.compressor.encode(row, self.sizes, seed) for row, seed in zip(rows, seeds, strict=True)]
        arrived = torch.empty_like(rows)
        for row, message in zip(arrived, messages, strict=True):
            row.copy_(self.compressor.decode(message, self.sizes))
        arrived = arrived.view_as(wanted)
        return Upload(reference + arrived, wanted - arrived, [len(m) + self.beside for m in messages], messages)

    def receive(self, down: State, share: Scalar, arrived: Vector, path: Scalar | None) -> State:
        """The upload that the server makes of what a device's message stands for."""
        start = self.algorithm.problem(down, self._fresh, share).start
        reference = self.reference(down, self._fresh, start, path)
        return self.upload(down, share, Solution(reference + arrived.to(reference), path))

    def upload(self, down: State, share: Scalar, seen: Solution) -> State:
        """What a method uploads of the model that the server sees, or of several stacked."""
        rows = seen.theta.shape[:-1]
        fresh = {name: vector.expand(*rows, *vector.shape) for name, vector in self._fresh.items()}
        return self.algorithm.report(down, fresh, share, seen)[1]


def _measured_in_private(algorithm: Algorithm, theta: Vector) -> bool:
    """Whether what uploads are measured from depends on the device's state. A method whose upload itself depends on it,
    so that nobody can make it of the model that the server sees, is refused: two devices with histories of their own
    move by the same from what they are measured from."""
    random = torch.Generator().manual_seed(0)

    def near(vector: Vector) -> Vector:
        return vector + torch.randn(vector.shape, generator=random).to(vector)

    down, move = algorithm.broadcast({name: near(v) for name, v in algorithm.server(theta).items()}), near(theta)
    references = []
    for share in TRIED:
        uploads = []
        for _ in range(2):
            state = algorithm.device(theta)
            for _ in range(2):
                state, _ = algorithm.report(down, state, share, Solution(near(theta), 0.5))
            reference = algorithm.reference(down, state, 0.5)
            references.append(algorithm.problem(down, state, share).start if reference is None else reference)
            uploads.append(algorithm.report(down, state, share, Solution(references[-1] + move, 0.5))[1])
        for name, vector in uploads[0].items():
            if not torch.allclose(vector, uploads[1][name], rtol=1e-3, atol=1e-3 * (1 + float(vector.abs().max()))):
                raise InputError(
                    f"{type(algorithm).__name__}: its upload {name!r} depends on the device's state, so the server can"
                    "not make it of a compressed model; leave the uplink out, or use a method such as FedDyn"
                )
    return not all(torch.equal(one, references[0]) for one in references)
