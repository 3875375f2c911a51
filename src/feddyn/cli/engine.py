"""The options that say how runs use the machine and where they are shown, and simulations made with them."""

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from feddyn.cli.show import leads
from feddyn.errors import InputError
from feddyn.records.layout import Status

if TYPE_CHECKING:
    from feddyn.reports.tracking import Tracker
    from feddyn.runs.plan import Plan
    from feddyn.runs.run import Run
    from feddyn.runs.simulation import Lines, Simulation, Start

T = TypeVar("T")


def _bytes(context: click.Context, parameter: click.Parameter, words: str | None) -> int | None:
    """A number of bytes, as in 500MB or 2GB."""
    if words is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]?)B?", words.strip())
    if found is None:
        raise click.BadParameter(f"{words!r} is not a size: write it as 500MB or 2GB")
    size = float(found[1]) * 1000 ** " kMGT".index(found[2] or " ")
    if size == float("inf"):
        raise click.BadParameter(f"{words!r} is more memory than there is anywhere")
    return int(size)


def seconds(context: click.Context, parameter: click.Parameter, words: str | None) -> float | None:
    """A time, as in 2h, 1h30m or 90s."""
    if words is None:
        return None
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", words.replace(" ", ""))
    if found is None or not any(found.groups()):
        raise click.BadParameter(f"{words!r} is not a time: write it as 2h, 90m or 1h30m")
    time = sum(float(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True))
    if not 0 < time < float("inf"):
        raise click.BadParameter(f"{words!r} is no time at all")
    return time


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
            type=click.Choice(["tensorboard", "mlflow", "wandb"]),
            help="Show the run in TensorBoard, MLflow or Weights & Biases (offline) while it goes on; repeatable.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def keep(command: Callable[..., None]) -> Callable[..., None]:
    """The option of single runs, of which there are not many, to keep what is needed to add rounds."""
    words = "Keep the last checkpoint of a complete run up to this size, so that rounds can be added."
    option = click.option("--keep", callback=_bytes, metavar="SIZE", default="100MB", show_default=True, help=words)
    return option(command)


def under_torchrun() -> bool:
    """Whether this process is one of several that run a setting together."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def together(work: Callable[[], T]) -> T:
    """Do something that may fail; under torchrun, where one rank fails all raise its error."""
    from feddyn.engine.executors.ranks import group

    return group().guarded(work)


def alone(command: str) -> None:
    """Refuse to be started by torchrun, where a command has many runs to look after."""
    if under_torchrun():
        raise InputError(f"feddyn {command} does not run under torchrun: use --workers, or feddyn run for one setting")


def processes(options: Mapping[str, Any]) -> int:
    """How many processes may compute: as asked for, or the cores."""
    from feddyn.engine.executors.forked import cores

    return options["workers"] or cores()


def simulation(plan: "Plan", directory: Path, options: Mapping[str, Any], resume: bool = True) -> "Simulation":
    """A run with a record, as the options ask for."""
    from feddyn.runs.saving import CheckpointEvery
    from feddyn.runs.simulation import Simulation

    return Simulation(
        plan,
        directory,
        workers=options["workers"],
        state_memory=options["state_memory"],
        checkpoint=CheckpointEvery(options["checkpoint_rounds"], options["checkpoint_minutes"], options.get("keep", 0)),
        resume=resume,
    )


def start(options: Mapping[str, Any], side_by_side: int = 1) -> "Start":
    """How a study starts, or goes on with, one of its runs, of which several share the machine."""
    from feddyn.engine.memory import quarter_of_memory

    count = max(side_by_side, 1)
    memory = quarter_of_memory() if options["state_memory"] is None else options["state_memory"]
    shares = {"workers": max(1, processes(options) // count), "state_memory": memory // count}
    return partial(_start, {**options, **shares})


def _start(options: Mapping[str, Any], plan: "Plan", directory: Path, label: str) -> "tuple[Run, Lines]":
    made = simulation(plan, directory, options)
    return made.run, rounds(made, label, options)


def rounds(simulation: "Simulation", label: str, options: Mapping[str, Any]) -> "Lines":
    """The rounds of a run that has not ended, shown where the options ask for; then its memory is given back."""
    trackers: list[Tracker] | None = None
    lines = iter(simulation) if simulation.run.status is Status.RUNNING else None
    try:
        for line in lines or ():
            if trackers is None:
                trackers = _trackers(simulation, label, line["round"] - 1, options)
            for tracker in trackers:
                tracker.line(line)
            yield line
    finally:
        if lines:
            lines.close()
        for tracker in trackers or ():
            tracker.close(simulation.run.status)
        simulation.federation.store.clear()


def _trackers(simulation: "Simulation", label: str, done: int, options: Mapping[str, Any]) -> "list[Tracker]":
    if not options["track"] or not leads() or simulation.out is None:
        return []
    from feddyn.reports.tracking import TRACKERS

    run = simulation.run
    trackers: list[Tracker] = [TRACKERS[name](simulation.out, label, run.setting, done) for name in options["track"]]
    for tracker in trackers:
        for line in run.history[:done] if tracker.fresh else ():
            tracker.line(line)
    return trackers
