"""The options that say how runs use the machine and where they are shown, and simulations made with them."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.cli.show import leads

if TYPE_CHECKING:
    from feddyn.reports.tracking import Tracker
    from feddyn.simulation.plan import Plan
    from feddyn.simulation.run import Simulation


def _bytes(context: click.Context, parameter: click.Parameter, words: str | None) -> int | None:
    """A number of bytes, as in 500MB or 2GB."""
    if words is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]?)B?", words.strip())
    if found is None:
        raise click.BadParameter(f"{words!r} is not a size: write it as 500MB or 2GB")
    return int(float(found[1]) * 1000 ** " kMGT".index(found[2] or " "))


def _installed(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    if names:
        from feddyn.reports.tracking import require

        require(names)
    return names


def engine(command: Callable[..., None]) -> Callable[..., None]:
    """The options that do not change a result."""
    memory = "Memory for device states, as in 2GB; more goes to a file (default: a quarter of the machine's)."
    options = (
        click.option(
            "--workers", type=click.IntRange(min=1), help="Processes that train devices (default: the cores)."
        ),
        click.option("--state-memory", callback=_bytes, metavar="SIZE", help=memory),
        click.option("--checkpoint-rounds", type=click.IntRange(min=1), help="Save the run every so many rounds."),
        click.option(
            "--checkpoint-minutes",
            type=click.FloatRange(min=0),
            default=5.0,
            show_default=True,
            help="Save the run every so many minutes.",
        ),
        click.option(
            "--track",
            multiple=True,
            callback=_installed,
            type=click.Choice(["tensorboard", "mlflow"]),
            help="Show the run in TensorBoard or MLflow while it goes on; repeatable.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def simulation(plan: "Plan", directory: Path, options: Mapping[str, Any], resume: bool = True) -> "Simulation":
    """A run with a record, as the options ask for."""
    from feddyn.simulation.run import Simulation
    from feddyn.simulation.saving import Every

    return Simulation(
        plan,
        directory,
        workers=options["workers"],
        state_memory=options["state_memory"],
        checkpoint=Every(options["checkpoint_rounds"], options["checkpoint_minutes"]),
        resume=resume,
    )


class Live:
    """The trackers that a run was asked to be shown in; they start with its first line."""

    def __init__(self, options: Mapping[str, Any], directory: Path, label: str, setting: Mapping[str, Any]):
        self._names = options["track"] if leads() else ()
        self._directory, self._label, self._setting = directory, label, setting
        self._trackers: list[Tracker] | None = None

    def line(self, line: Mapping[str, Any]) -> None:
        """Show a round."""
        if self._trackers is None:
            self._trackers = [self._start(name, line["round"] - 1) for name in self._names]
        for tracker in self._trackers:
            tracker.line(line)

    def _start(self, name: str, done: int) -> "Tracker":
        from feddyn.reports.tracking import TRACKERS

        return TRACKERS[name](self._directory, self._label, self._setting, done)

    def close(self, status: str) -> None:
        """The run has ended, or paused."""
        for tracker in self._trackers or ():
            tracker.close(status)
