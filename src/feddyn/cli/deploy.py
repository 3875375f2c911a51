"""`feddyn deploy`: a federation of real sites on Flower."""

from pathlib import Path

import click

from feddyn.cli.completion import settings_files
from feddyn.cli.data import provide
from feddyn.cli.show import Place, new, say, show
from feddyn.errors import InputError


@click.group(short_help="Train on real sites with Flower.")
def deploy() -> None:
    """Train on real sites with Flower: write a deployment, try it on loopback, look how far it is."""


@deploy.command("init", short_help="Write all that a deployment of a settings file needs.")
@click.argument("file", type=Place(), shell_complete=settings_files)
@click.argument("directory", type=Place())
@click.option("--sites", default="3", help="How many sites (site-0, site-1, ...), or their names, with commas.")
@click.option("--address", default="127.0.0.1", help="Name or IPv4 address by which sites reach the server.")
@click.option("--port", default=8443, type=click.IntRange(1, 65535), help="The port that sites reach.")
@click.option("--superlink-port", default=8000, type=click.IntRange(1, 65535), help="The SuperLink's, on loopback.")
@click.option("--least", default=1, type=click.IntRange(min=1), help="Fewer uploads do not close a round.")
def init_deployment(
    file: Path, directory: Path, sites: str, address: str, port: int, superlink_port: int, least: int
) -> None:
    """Write all that a deployment of the settings FILE needs to a new DIRECTORY: app, keys, scripts, units."""
    _require_flower()
    from feddyn.deploy.files import Ports, init
    from feddyn.settings.deployed import deployable, rules

    names = [f"site-{k}" for k in range(int(sites))] if sites.isdigit() else [name.strip() for name in sites.split(",")]
    plan = deployable(file, provide)
    rules(plan, least)  # which refuses what no round could follow
    own = address == "127.0.0.1"
    ports = Ports(proxy=port, superlink=superlink_port)
    init(directory, file, dict(plan.code), sites=names, address=address, ports=ports, least=least, one_machine=own)
    say(f"a deployment of {len(names)} sites: {directory}")
    if len(names) != (devices := plan.population.devices):
        say(f"the setting has {devices} devices, not {len(names)}: right only if the sites load data of their own")
    say(f"what to do next stands in {directory / 'README.md'}")


@deploy.command(short_help="Try all of it on loopback, with a crash in the middle.")
@click.argument("file", required=False, type=Place(), shell_complete=settings_files)
@click.option("--out", type=Place(), help="A new directory (default: under runs/).")
@click.option("--rounds", type=click.IntRange(min=1), help="How many rounds (default: the setting's).")
@click.option("--kill-after", default=3, help="Kill the server's app after this round (0: never).")
@click.option("--warm/--stock", default=True, help="Warm client processes, or Flower's own.")
@click.option("--first-port", default=18000, type=click.IntRange(1024, 60000), help="Of a thousand that are free.")
def demo(file: Path | None, out: Path | None, rounds: int | None, kill_after: int, warm: bool, first_port: int) -> None:
    """The whole thing on loopback: keys, SuperLink, SuperNodes, training, a kill -9, recovery, the same bits."""
    _require_flower()
    from feddyn.deploy import demo as stage

    scene = stage.Scene(out or new(Path("runs"), "deploy-demo"), rounds=rounds, first_port=first_port)
    scene = scene._replace(kill_after=kill_after, warm=warm, setting=file or scene.setting)
    show(stage.demo(scene, say))
    say(f"record: {scene.directory / 'server' / 'federation'}")


@deploy.command()
@click.argument("directory", type=Place())
def status(directory: Path) -> None:
    """How far the federation in DIRECTORY is, and its sites."""
    from feddyn.deploy.status import status as found

    told = found(directory)
    say(told.sentence)
    show(told.sites)
    show(told.events)


def _require_flower() -> None:
    from importlib.util import find_spec

    if find_spec("flwr") is None:
        raise InputError("deployments need Flower: pip install 'feddyn[flower]'")
