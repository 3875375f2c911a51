"""What a run is computed with: what its figures may depend on in their last digits, and its times altogether."""

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FIELDS = ("machine", "processor", "cores", "python", "torch", "feddyn")
"""What `machine` tells."""


def machine() -> dict[str, str | int]:
    """The system, the processor and the versions of this process."""
    values = (platform.platform(), processor(), os.cpu_count() or 1, platform.python_version())
    return dict(zip(FIELDS, (*values, _version("torch"), _version("feddyn")), strict=True))


def processor(listing: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name: as Linux lists it, or whatever the system calls it."""
    with suppress(OSError, UnicodeDecodeError):
        for line in listing.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
