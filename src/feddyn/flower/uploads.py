"""Uploads are checked after they are decoded, whoever sent them: one that is not as it should be is left out."""

import statistics
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from feddyn.flower.letters import Array, BadLetterError, Letter, Vectors, count_in, ticket_in


class Upload(NamedTuple):
    """What a site sent that may be counted."""

    ticket: str
    vectors: Vectors
    gradients: int
    norms: dict[str, float]


def checked(answer: Letter, ticket: str, read: Callable[[Letter], Vectors], limit: float) -> Upload:
    """The upload in an answer to the letter with this ticket; `read` gives its vectors, whose numbers stay below
    `limit` in magnitude. `BadLetterError` says in a fixed word what is wrong."""
    if ticket_in(answer) != ticket:
        raise BadLetterError("another ticket")
    gradients = count_in(answer, "gradients")
    vectors = bounded(read(answer), limit)
    norms = {name: float(np.linalg.norm(vector.astype(np.float64))) for name, vector in vectors.items()}
    return Upload(ticket, vectors, gradients, norms)


def bounded(vectors: Vectors, limit: float) -> Vectors:
    """The vectors, if all their numbers are finite and below `limit` in magnitude."""
    for vector in vectors.values():
        if not np.isfinite(vector).all():
            raise BadLetterError("not finite")
        if vector.size and float(np.abs(vector).max()) >= limit:
            raise BadLetterError("too large")
    return vectors


def same(vectors: Mapping[str, Array], like: Mapping[str, Array]) -> Vectors:
    """The vectors, if they have the names, shapes and types of others."""
    if set(vectors) != set(like):
        raise BadLetterError("other names")
    for name, vector in vectors.items():
        if vector.dtype != like[name].dtype:
            raise BadLetterError("another type")
        if vector.shape != like[name].shape:
            raise BadLetterError("another shape")
    return {name: np.ascontiguousarray(vectors[name]) for name in like}


def outliers(uploads: Mapping[str, Upload], before: Mapping[str, float], limit: float) -> set[str]:
    """The sites of whose uploads a norm is more than `limit` times the round's median. Of two the smaller one is the
    median, and a single one is compared with the median `before`."""
    found = set()
    for name, median in medians(uploads).items():
        reference = before.get(name, 0.0) if len(uploads) == 1 else median
        found |= {site for site, upload in uploads.items() if reference > 0 and upload.norms[name] > limit * reference}
    return found


def medians(uploads: Mapping[str, Upload]) -> dict[str, float]:
    """The (low) median norm of every vector."""
    names = next(iter(uploads.values())).norms if uploads else ()
    return {name: statistics.median_low(upload.norms[name] for upload in uploads.values()) for name in names}
