"""The apps of a deployment from the settings file that `feddyn run` takes: the same model, method, solver and seeds.

Nothing here imports torch before there is something to compute: Flower starts a process for every message.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from feddyn.flower.apps import Config, Service, serving, working
from feddyn.flower.device import Worker

if TYPE_CHECKING:
    from feddyn.data.population import Population


def server_app(file: Path) -> ServerApp:
    """The server of a settings file. It evaluates models as a simulation does, so it needs the file's data."""

    def make() -> Service:
        from feddyn.settings.deployed import service

        return service(file)

    return serving(make)


def client_app(file: Path, data: "Callable[[Config], Population] | None" = None) -> ClientApp:
    """A site of a settings file; `data` loads its samples (None: those of the file's device number `partition-id`)."""

    def make(config: Config) -> Worker:
        from feddyn.settings.deployed import worker

        return worker(file, data, config)

    return working(make)
