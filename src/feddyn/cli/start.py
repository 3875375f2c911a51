"""`feddyn init`."""

from pathlib import Path

import click

from feddyn.cli.show import Place, say


@click.command(short_help="Write a setting, a model and data to start from.")
@click.argument("directory", type=Place())
def init(directory: Path) -> None:
    """Write a start into DIRECTORY: a setting with comments, a model, a metric and a small table; it runs as it is."""
    from feddyn.settings.starter import write

    for path in write(directory):
        say(str(path))
    say(f"to run it: feddyn run {directory / 'setting.toml'}")
