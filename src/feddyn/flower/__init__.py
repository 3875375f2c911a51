"""Federations of real sites: the same algorithms, cut at the wire. Only `wire` and `apps` know Flower.

Names are imported when they are first used: a site's half of the protocol needs neither Flower nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feddyn.flower.apps import client_app as client_app
    from feddyn.flower.apps import server_app as server_app
    from feddyn.flower.rules import Rules as Rules

_HOME = {"Rules": "rules", "client_app": "apps", "server_app": "apps"}

__all__ = ["Rules", "client_app", "server_app"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'feddyn.flower' has no attribute {name!r}")
    return getattr(import_module(f"feddyn.flower.{_HOME[name]}"), name)
