"""A whole run: rounds, evaluation, the target, the record."""

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from feddyn.algorithms.base import Vector
from feddyn.checks import LARGEST, require_whole
from feddyn.data.picture import class_counts
from feddyn.engine.executors.ranks import group
from feddyn.engine.federation import Federation
from feddyn.engine.links import Answers
from feddyn.engine.shield import shielded
from feddyn.errors import DivergenceError, FeddynError, InputError
from feddyn.identity import told_unseen
from feddyn.metrics import Figures, spread
from feddyn.records.files import home
from feddyn.records.layout import Line, Setting, Status, key
from feddyn.round.local import advice
from feddyn.round.participation import Sampler
from feddyn.runs.parts import Parts, describe_inputs
from feddyn.runs.plan import Plan
from feddyn.runs.run import Run
from feddyn.runs.saving import BEST, CheckpointEvery, Saver
from feddyn.runs.watch import Watch

EXPLODED = 1e6
"""A loss, or a norm, of this many times the initial one (plus 1) counts as an explosion."""
LISTED = 10_000
"""Devices that a record lists by name and size."""
Resume: TypeAlias = bool | Literal["unchecked"]
Lines: TypeAlias = Generator[Line, None, None]
Start: TypeAlias = Callable[[Plan, Path, str], tuple[Run, Lines]]
"""Starts a plan, or goes on with it where it has a record: the run, and its rounds as they are completed."""


class Simulation:
    """A run that can be watched: iterate over it for a line a round; `run` fills up meanwhile.

    workers: processes that train devices (None: as many as there are cores); state_memory: bytes of memory for device
    states, beyond which they go to a file (None: a quarter of the machine's). Neither changes a bit of the result, nor
    does it matter whether a run was interrupted: with `resume` it goes on where its record in `out` ends, if the
    arguments are those that it began with. Where that cannot be seen (an argument holds a lock, an open file, compiled
    code), there is a warning, and going on takes the word `resume="unchecked"`.
    Under torchrun all ranks run the simulation together, and the first one keeps the record.
    """

    def __init__(
        self,
        plan: Plan,
        out: str | PathLike[str] | None = None,
        *,
        workers: int | None = None,
        state_memory: int | None = None,
        resume: Resume = False,
        checkpoint: CheckpointEvery | None = None,
    ):
        if resume not in (False, True, "unchecked"):
            raise InputError(f"resume must be True, False or 'unchecked', not {resume!r}")
        for name, value, least, most in (("workers", workers, 1, 1024), ("state_memory", state_memory, 0, LARGEST)):
            if value is not None:
                require_whole("", name, value, least, most)
        self.plan, self.workers, self._group = plan, workers, group()
        self.out = None if out is None else home(Path(out))
        setting = plan.setting()
        self._group.require_same("simulation", key(setting))
        self.federation = self._group.guarded(lambda: self._federation(state_memory))
        initial = self._group.guarded(self._initial)
        parts = partial(Parts, plan.model, plan.population.transform, plan.loss, plan.evaluation.metrics)
        self.run = Run(setting, parts, self.federation.models, initial, on_devices=self._census(), path=self.out)
        self.run.inputs = describe_inputs(plan.population, self.federation.initial.dtype)
        self.run.classes = self._classes()
        model, metric = self.run.watched
        self._watch = Watch(model, metric, plan.evaluation.directions[metric], initial, plan.patience)
        self._best: Vector | None = None
        self._start_norm = float(self.federation.initial.norm())
        every = checkpoint or CheckpointEvery()
        self._saver = Saver(self.out, setting, every, self._group, plan.code) if self.out else None
        self._resume = bool(resume)
        if self.out:
            _refuse_unseen(setting, self.out, resume)
        if self._saver and resume and (found := self._saver.ended()):
            for name, value in found._asdict().items():
                setattr(self.run, name, value)
            self._look_back()

    def _federation(self, state_memory: int | None) -> Federation:
        plan = self.plan
        return Federation(
            plan.model,
            plan.population,
            plan.algorithm,
            plan.local_solver,
            loss=plan.loss,
            seed=plan.seed,
            stack=plan.stack_size,
            evaluation=plan.evaluation,
            group=self._group,
            state_memory=state_memory,
            uplink=plan.uplink,
            downlink=plan.downlink,
        )

    def _initial(self) -> dict[str, Figures]:
        """The figures of the initial model, which must make sense."""
        initial = self.federation.evaluate()
        if not all(math.isfinite(figures["loss"]) for figures in initial.values()):
            raise InputError(
                "the loss of the initial model is not finite: check the data's scale and the model's parameters"
            )
        known = next(iter(initial.values()))
        for name, part in (("target", self.plan.target), ("patience", self.plan.patience)):
            if part is not None and part.metric is not None and part.metric not in known:
                raise InputError(
                    f"{name}: there is no {part.metric} for this model and data; there is: {', '.join(known)}"
                )
        return initial

    def __iter__(self) -> Lines:
        """The run, round by round; it can be run once."""
        run, saver = self.run, self._saver
        if run.status is not Status.RUNNING or run.history:
            raise FeddynError("this simulation has been run: make a new one")
        if saver:
            run.history, self._best = saver.open(self.federation, self._resume), saver.best
            run.models = self._models()
            self._look_back()
        try:
            self.federation.start(self.workers, saver.private if saver else ())
            clock = time.perf_counter()
            for line in self._lines():
                now = time.perf_counter()
                run.seconds, clock = run.seconds + now - clock, now
                if self._watch.take(line):
                    self._best = self.federation.models[self._watch.model]
                run.models = self._models()
                run.history.append(line)
                if run.reached is None and self._reaches(line):
                    run.reached = line
                if saver:
                    saver.best = self._best
                    saver.line(line, self.federation)
                yield line
            if saver:
                if run.history[-1].get("on_devices", {}).keys() - run.on_devices.keys():  # interrupted after it
                    self._on_devices()
                saver.conclude(self.federation)
            gave_up = self._watch.gives_up and len(run.history) < self.plan.rounds
            run.status = Status.REACHED if run.reached else Status.GAVE_UP if gave_up else Status.FINISHED
        except DivergenceError as error:
            run.status, run.message, error.run = Status.DIVERGED, str(error), run
            raise
        except BaseException as error:
            run.status = Status.INTERRUPTED
            if isinstance(error, FeddynError):
                error.run = run
            raise
        finally:
            with shielded():  # who presses Ctrl-C twice wants it to end, not to lose the run
                self.federation.close()
                if saver:
                    # a server that has exploded is not worth keeping; the checkpoint before it is
                    sound = run.status is Status.INTERRUPTED or self.federation.rounds == len(run.history)
                    saver.close(self.federation if sound else None, run)

    def _census(self) -> dict[str, list[Any]]:
        """Who took part, where there are not too many to be listed."""
        return self.federation.census if self.plan.population.devices <= LISTED else {}

    def _classes(self) -> list[list[int]]:
        """How many samples of each class they have, where there are classes."""
        devices = self.plan.population.devices
        counts = class_counts(self.plan.population, devices) if self.out and devices <= LISTED else None
        rows: list[list[int]] = [] if counts is None else counts.tolist()
        return rows

    @property
    def passed_over(self) -> list[str]:
        """Checkpoints that were damaged, so that the run went on from the one before them."""
        return self._saver.checkpoints.passed_over if self._saver else []

    def _lines(self) -> Iterator[Line]:
        sampler = self.plan.sampler()
        if self.federation.rounds > len(self.run.history):  # interrupted between a round and its line
            yield self._line(self._answers(sampler, self.federation.rounds - 1))
        while self.federation.rounds < self.plan.rounds and not self._stops:
            answers = self._answers(sampler, self.federation.rounds)
            self.federation.step(self.federation.rounds, answers)
            yield self._line(answers)

    @property
    def _stops(self) -> bool:
        """Whether the run ends before its last round."""
        target = self.plan.target
        return self._watch.gives_up or (target is not None and target.stop and self.run.reached is not None)

    def _answers(self, sampler: Sampler, round: int) -> Answers:
        asked, links = sampler.active(round), self.plan.links
        return links.answers(self.plan.seed, round, asked) if links else Answers(asked, [1.0] * len(asked), [], [], [])

    def _line(self, answers: Answers) -> Line:
        """The round that was just completed."""
        number, directions = self.federation.rounds, self.plan.evaluation.directions
        line: Line = self.federation.totals.line(number)
        line["active"] = answers.counted
        if self.plan.links:
            line |= {"offline": answers.offline, "lost": answers.lost, "late": answers.late}
            line["slow"] = sum(effort < 1 for effort in answers.effort)
        else:
            del line["wasted"]
        line["norms"] = {name: float(vector.norm()) for name, vector in self.federation.server.items()}
        line["devices"] = self.federation.device_norms
        line |= {"broadcast": norms} if (norms := self.federation.broadcast_norms) else {}
        if number % self.plan.evaluation.every == 0 or number == self.plan.rounds:
            line["models"] = self.federation.evaluate()
            if columns := self._on_devices():
                spreads = {name: spread(values, directions[name]) for name, values in columns.items()}
                line["on_devices"] = {name: found for name, found in spreads.items() if found}
        self._refuse_explosion(line)
        return line

    def _on_devices(self) -> dict[str, list[float]] | None:
        """Note the figures of the server's model on the devices, where they are asked for."""
        if columns := self.federation.evaluate_devices():
            self.run.on_devices = {**self.federation.census, **columns}
        return columns

    def _models(self) -> dict[str, Vector]:
        """The models that the run has after the last round, and the best one."""
        return self.federation.models | ({} if self._best is None else {BEST: self._best})

    def _look_back(self) -> None:
        """What follows from the lines of a record: the first that reached the target, and the best one."""
        self.run.reached = next((line for line in self.run.history if self._reaches(line)), None)
        for line in self.run.history:
            self._watch.take(line)

    def _reaches(self, line: Line) -> bool:
        target, directions = self.plan.target, self.plan.evaluation.directions
        return target is not None and "models" in line and target.reached(line["models"], directions)

    def _refuse_explosion(self, line: Line) -> None:
        help = advice(self.plan.algorithm, self.plan.local_solver)
        where = f"in round {line['round']} (active devices: {', '.join(map(str, line['active']))}); {help}"
        for name, norm in line["norms"].items():
            # what starts at zero (h, c) is compared with its size after the first round
            start = self.run.history[0]["norms"][name] if self.run.history else max(norm, self._start_norm)
            if exploded(norm, start):
                raise DivergenceError(f"the norm of the server's {name} exploded to {norm:.3g} {where}")
        for name, figures in line.get("models", {}).items():
            if exploded(figures["loss"], self.run.initial[name]["loss"]):
                raise DivergenceError(f"the loss of the {name} model exploded to {figures['loss']:.3g} {where}")


def exploded(value: float, before: float) -> bool:
    """Whether a norm or a loss, which may be negative, has grown beyond all use, or is no number."""
    return not (math.isfinite(value) and value <= EXPLODED * (1 + abs(before)))


def _refuse_unseen(setting: Setting, out: Path, resume: Resume) -> None:
    """Warn of parts of a run that no record can describe, and do not go on with it unasked."""
    parts = {name: found for name, part in setting.items() if (found := told_unseen(part))}
    if not parts:
        return
    words = "; ".join(f"the {name} holds {', '.join(unseen)}" for name, unseen in parts.items())
    if resume is True and (out / "setting.toml").exists():
        raise InputError(
            f"whether the run in {out} began with the same arguments cannot be seen: {words}; if you know that it did, "
            "go on with resume='unchecked'"
        )
    warnings.warn(f"no record can describe all of this run: {words}", stacklevel=3)
