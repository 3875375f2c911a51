"""`feddyn.simulate`: a run from objects, in one call."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike

from torch import nn

from feddyn.algorithms.base import Algorithm
from feddyn.data.population import Population
from feddyn.engine.links import Links
from feddyn.metrics import Evaluation, Metric, Patience, Target
from feddyn.models.flat import Loss
from feddyn.records.layout import Line
from feddyn.round.participation import Participation
from feddyn.runs.following import follow
from feddyn.runs.plan import Plan
from feddyn.runs.run import Run
from feddyn.runs.saving import CheckpointEvery
from feddyn.runs.simulation import Resume, Simulation
from feddyn.solvers.base import Solve
from feddyn.wire import Compressor


def simulate(
    model: nn.Module,
    population: Population,
    algorithm: Algorithm,
    solver: Solve,
    *,
    participation: Participation,
    rounds: int,
    seed: int = 0,
    loss: Loss = nn.functional.cross_entropy,
    evaluation: Evaluation | None = None,
    metrics: Sequence[Metric] = (),
    target: Target | None = None,
    patience: Patience | int | None = None,
    out: str | PathLike[str] | None = None,
    stack: int | None = None,
    links: Links | None = None,
    uplink: Compressor | None = None,
    downlink: Compressor | None = None,
    workers: int | None = None,
    state_memory: int | None = None,
    resume: Resume = False,
    checkpoint: CheckpointEvery | None = None,
    progress: bool | None = None,
    callback: Callable[[Line], object] | None = None,
) -> Run:
    """Train `model` (from its parameters on; it is not changed) with a method on a population of devices.

    participation: a float in (0, 1] is each device's probability, an int a number of devices, lists a schedule.
    metrics: what to measure of models beside loss, accuracy and the objective.
    target: stop at the first round that reaches it; patience: or after so many rounds without a better figure. The best
    model is kept (`run.model("best")`). out: a new directory for the record.
    stack: how many devices train as one batched computation (None: as many as pays, 1: one by one).
    links: how uploads are lost or late, and devices offline or slow (None: never).
    uplink, downlink: how uploads and broadcasts are compressed, such as Quantized(bits=4) (None: not at all).
    workers: processes that train devices (None: the cores); state_memory: bytes for device states (None: a quarter of
    the machine's memory), beyond which they go to a file. These two do not change the result.
    resume: go on with the run whose record is in `out`, if there is one and it began with these arguments ('unchecked':
    also where that cannot be seen); it may end at another time than it did, as with more rounds. checkpoint: how often
    a run with a record is saved for that (default: every five minutes, and when it is interrupted or complete).
    progress: show it on standard error (None: where there is a terminal or a notebook). callback: a function that is
    called with every line of the record.
    Equal arguments give equal bits. A run that diverges raises `DivergenceError`, and Ctrl-C `Interrupted`, a
    `KeyboardInterrupt`; the `run` of both has all rounds before.
    """
    evaluation = evaluation or Evaluation()
    if metrics:
        own = Evaluation(metrics=metrics).metrics  # refuses what is none
        evaluation = replace(evaluation, metrics=(*evaluation.metrics, *own))
    plan = Plan(
        model,
        population,
        algorithm,
        solver,
        participation,
        rounds,
        seed,
        loss,
        evaluation,
        target,
        stack=stack,
        links=links,
        uplink=uplink,
        downlink=downlink,
        patience=Patience(patience) if isinstance(patience, int) else patience,
    )
    simulation = Simulation(plan, out, workers=workers, state_memory=state_memory, resume=resume, checkpoint=checkpoint)
    return follow(simulation, progress, callback)
