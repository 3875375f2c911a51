"""What crosses between the server and its devices in a round, compressed or not, and how many bytes that is."""

from collections.abc import Mapping
from typing import NamedTuple

import torch

from feddyn.algorithms.base import Algorithm, State, Vector
from feddyn.engine.links import Answers
from feddyn.round.seeds import integer
from feddyn.wire.base import Compressor, Sizes
from feddyn.wire.downlink import Sent, common_model, send

COMMON, UPLOADED, NORM = "common.", "uploaded", "broadcast."
"""Names of vectors in a checkpoint: the beginning of the common model's, the mean length of an upload, and the
beginning of the last broadcast's norms, which a round that was interrupted before its line still needs."""


class Traffic(NamedTuple):
    """Bytes to or from devices whose upload was counted, and to or from the others."""

    counted: int
    in_vain: int


class Crossed(NamedTuple):
    """All that crossed in a round: the broadcast, who answered, and the bytes of the uploads."""

    sent: Sent
    answers: Answers
    up: Traffic


class Wires:
    """The broadcasts of a method and the lengths of its uploads. Without a `downlink` what is broadcast is sent as it
    is, and so is the `upload` unless uploads are `compressed`."""

    def __init__(
        self,
        algorithm: Algorithm,
        initial: Vector,
        upload: State,
        *,
        compressed: bool,
        downlink: Compressor | None,
        sizes: Sizes,
        devices: int,
        seed: int,
    ):
        self.algorithm, self.seed = algorithm, seed
        self._raw, self._compressed = _raw(upload), compressed
        self._upload_length = torch.full((1,), float(self._raw), dtype=torch.float64)
        self.common = common_model(algorithm, downlink, sizes, initial, devices) if downlink else None
        self.norms: dict[str, float] = {}
        """Of the last broadcast, where it was compressed: the lengths of what was `sent` and of what was `unsent`."""

    def send(self, round: int, server: State) -> Sent:
        """The broadcast of a round; nothing is kept of it until it is committed."""
        return send(self.algorithm, self.common, server, integer(self.seed, "downlink", round))

    def downloads(self, sent: Sent, answers: Answers) -> Traffic:
        """What devices are sent, each what it needs."""
        if self.common is None or sent.broadcast is None:
            return _alike(answers, _raw(sent.down))
        lengths, counted = self.common.lengths(sent.broadcast, _reached(answers)), len(answers.counted)
        return Traffic(sum(lengths[:counted]), sum(lengths[counted:]))

    def uploads(self, answers: Answers, counted: int) -> Traffic:
        """What devices send; `counted` is the length of the compressed uploads that were counted. The others are not
        computed: they are taken to be as long as those of their round or, where there are none, of the one before, and
        before any was counted as long as the raw vectors."""
        if not self._compressed:
            return _alike(answers, self._raw)
        mean = counted / len(answers.counted) if answers.counted else float(self._upload_length)
        return Traffic(counted, int(mean * (len(answers.lost) + len(answers.late))))

    def commit(self, crossed: Crossed) -> None:
        """Make a round the last one."""
        sent, answers, up = crossed
        if answers.counted:
            self._upload_length = torch.tensor([up.counted / len(answers.counted)], dtype=torch.float64)
        if self.common and sent.broadcast:
            self.common.commit(sent.broadcast, _reached(answers))
            self.norms = sent.norms

    def vectors(self) -> dict[str, Vector]:
        """All that the next round, or the line of this one, depends on."""
        found = {UPLOADED: self._upload_length} if self._compressed else {}
        if self.common:
            found |= {COMMON + name: vector for name, vector in self.common.vectors().items()}
        return found | {NORM + name: torch.tensor([norm], dtype=torch.float64) for name, norm in self.norms.items()}

    def restore(self, rounds: int, vectors: Mapping[str, Vector]) -> None:
        """Go back to where `vectors` were taken."""
        self._upload_length = vectors.get(UPLOADED, self._upload_length)
        if self.common:
            mine = {name.removeprefix(COMMON): v for name, v in vectors.items() if name.startswith(COMMON)}
            self.common.restore(rounds, mine)
        self.norms = {name.removeprefix(NORM): float(v) for name, v in sorted(vectors.items()) if name.startswith(NORM)}


def _reached(answers: Answers) -> list[int]:
    return [*answers.counted, *answers.lost, *answers.late]


def _alike(answers: Answers, length: int) -> Traffic:
    """The traffic where all messages have the same length."""
    return Traffic(len(answers.counted) * length, (len(answers.lost) + len(answers.late)) * length)


def _raw(vectors: State) -> int:
    """The bytes of vectors as they are."""
    return sum(vector.nbytes for vector in vectors.values())
