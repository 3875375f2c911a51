"""Who holds which samples."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """What texts point to is imported when it is first used: lists of data sets need no PyTorch."""
    if name not in ("partition", "reading", "transforms"):
        raise AttributeError(f"module 'feddyn.data' has no attribute {name!r}")
    return import_module(f"feddyn.data.{name}")
