"""What stands in a setting for something that exists only in memory: its name, and a hash of what it does."""

import hashlib
from functools import partial
from typing import Any

import torch


def raw_bytes(data: torch.Tensor) -> bytes:
    """The memory of a tensor of any type, for a hash."""
    return data.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def describe(part: object) -> dict[str, Any]:
    """A function, module or other object by its name and, where it has one, a hash of its code or parameters: two
    lambdas are not the same, nor are two partial functions or two losses with other weights."""
    if isinstance(part, partial):
        fixed = [describe(part.func), list(part.args), sorted(part.keywords.items())]
        return {"name": "functools.partial", "of": _qualified(part.func), "sha256": _hash(fixed)}
    if isinstance(part, torch.nn.Module):
        digest = hashlib.sha256(repr(part).encode())
        for name, value in part.state_dict().items():
            digest.update(name.encode())
            digest.update(raw_bytes(value))
        return {"name": _qualified(part), "sha256": digest.hexdigest()}
    code = getattr(part, "__code__", None)
    if code is None:
        words = repr(part)
        return {"name": _qualified(part)} | ({} if " at 0x" in words else {"repr": words})
    constants = [constant for constant in code.co_consts if not hasattr(constant, "co_code")]
    return {"name": _qualified(part), "sha256": _hash([code.co_code, code.co_names, code.co_varnames, constants])}


def _hash(parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _qualified(part: object) -> str:
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}.{named.__qualname__}"
