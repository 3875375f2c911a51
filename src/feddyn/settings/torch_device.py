"""The torch device that a setting names."""

import re

import torch

from feddyn.errors import InputError


def device(name: object) -> torch.device:
    """What a name stands for: the CPU, or one of CUDA's devices, which need not be there."""
    if not isinstance(name, str) or not re.fullmatch(r"cpu|cuda(:\d{1,3})?", name):
        raise InputError(f"device must be 'cpu', 'cuda' or 'cuda:N', not {name!r}")
    return torch.device(name)


def require_device(found: torch.device) -> torch.device:
    """The device, if this machine has it."""
    if found.type == "cpu":
        return found
    if not torch.cuda.is_available():
        why = "finds none here" if torch.backends.cuda.is_built() else "is built for the CPU only"
        raise InputError(
            f"device = '{found}': there is no CUDA device, PyTorch {torch.__version__} {why}; leave device out to "
            "compute on the CPU"
        )
    if (found.index or 0) >= (count := torch.cuda.device_count()):
        raise InputError(f"device = '{found}': there are {count} CUDA devices, numbered from 0")
    return found
