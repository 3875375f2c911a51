"""A run that somebody follows: shown while it goes on, and told to a function, line by line."""

import copy
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from functools import partial

from feddyn.errors import InputError, Interrupted
from feddyn.records.layout import Line, Status
from feddyn.runs.run import Run
from feddyn.runs.simulation import Simulation
from feddyn.views.progress import figure, progress, watched


def follow(simulation: Simulation, shown: bool | None, callback: Callable[[Line], object] | None) -> Run:
    """Run what has not ended. Where it is interrupted, what there is so far is in the exception's `run`.

    shown: with progress on standard error (None: where there is a terminal or a notebook). callback: called with a copy
    of every line; what it raises ends the run. Under ranks both are of the first one.
    """
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function that takes a line, not {callback!r}")
    run, plan, label = simulation.run, simulation.plan, type(simulation.plan.algorithm).__name__
    if run.status is not Status.RUNNING:
        return run
    group = simulation.federation.group
    shown = (watched(stderr=True) if shown is None else shown) and group.rank == 0
    callback = callback if group.rank == 0 else None
    with progress("round", _write, stderr=True) if shown else nullcontext() as report:
        try:
            with closing(iter(simulation)) as lines:
                for line in lines:
                    if report and line["round"] < plan.rounds:
                        report(label, line["round"], plan.rounds, figure(run.headline, line), plan.may_stop)
                    group.guarded(partial(_call, callback, line))
        except KeyboardInterrupt:
            raise Interrupted(run) from None
        finally:
            if report and run.history:
                last = figure(run.headline, run.history[-1])
                report(label, len(run.history), len(run.history), ", ".join(filter(None, (last, run.outcome))))
    return run


def _call(callback: Callable[[Line], object] | None, line: Line) -> None:
    if callback:
        callback(copy.deepcopy(line))


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
