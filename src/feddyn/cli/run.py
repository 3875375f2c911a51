"""`feddyn run`, `feddyn resume` and `feddyn methods`."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import feddyn
from feddyn.cli.completion import records, settings_files
from feddyn.cli.data import provide
from feddyn.cli.engine import engine, keep, rounds, simulation, together
from feddyn.cli.interrupts import interrupted
from feddyn.cli.look import require_record
from feddyn.cli.show import Place, leads, new, progress, say, show
from feddyn.errors import DivergenceError, FeddynError
from feddyn.records.comparison import read_comparison, write_comparison
from feddyn.records.layout import Status, ended
from feddyn.views.progress import figure
from feddyn.views.tables import Table, comparison

if TYPE_CHECKING:
    from feddyn.runs.simulation import Simulation
    from feddyn.settings.building import Named


@click.command(short_help="Run a settings file or, without one, the demo.")
@click.argument("file", required=False, type=Place(), shell_complete=settings_files)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key (solver.lr=0.05); repeatable.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the data, the schedule, the model and the batches.")
@click.option("--out", type=Place(), help="A new directory for the record (default: under runs/).")
@click.option("--device", help="Where to compute: cpu (the default) or cuda; a part of the setting.")
@keep
@engine
def run(
    file: Path | None, changes: Sequence[str], seed: int | None, out: Path | None, device: str | None, **options: Any
) -> None:
    """Run a settings FILE; without one, compare four methods on the paper's synthetic problem.

    A run that was interrupted goes on with `feddyn resume`. Workers, memory and checkpoints do not change the result.
    Under torchrun, all ranks run the setting together.
    """
    from feddyn.records.layout import key
    from feddyn.records.writer import claim
    from feddyn.settings.building import plans
    from feddyn.settings.documents import read

    chosen = file or Path(feddyn.__file__).parent / "settings" / "demo.toml"
    changes = [*changes, f"device={device}"] if device else changes
    named = together(lambda: plans(read(chosen), changes, seed, folder=chosen.parent, fetch=provide))
    unique = key({"runs": [plan.setting() for _, plan in named]})[:8]
    directory = out or new(Path("runs"), f"{chosen.stem}-{unique}")
    simulations = _simulations(named, directory, options)

    def begin() -> None:
        if leads():
            claim(directory)
            code = {name: source for _, plan in named for name, source in plan.code.items()}
            write_comparison(directory, [(label, plan.setting()) for label, plan in named], code)

    together(begin)
    _carry_out(simulations, directory, options)


@click.command(short_help="Go on with an interrupted run or comparison.")
@click.argument("directory", type=Place(), shell_complete=records)
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="End at another time (rounds=200, target.value=0.9)."
)
@keep
@engine
def resume(directory: Path, changes: Sequence[str], **options: Any) -> None:
    """Go on with an interrupted run, or comparison, from its record in DIRECTORY, to the same bits.

    A run that is complete goes on with more rounds: --set rounds=200. What defines its past cannot be changed.
    """
    from feddyn.records.files import refuse_links
    from feddyn.settings.building import Named, plans
    from feddyn.settings.documents import read

    def prepare() -> list[Named]:
        refuse_links(directory)
        named = []
        runs = read_comparison(directory)
        if not runs:
            require_record(directory)
            runs = [("", read(directory / "setting.toml"))]
        for label, document in runs:
            found = plans(document, changes, folder=directory, fetch=provide)
            named += [Named(label or name, plan) for name, plan in found]
        return named

    named = together(prepare)
    simulations = _simulations(named, directory, options, resume=True)
    if all(simulation.run.status.complete for simulation in simulations.values()):
        if leads():
            early = next(filter(None, map(_ended_early, simulations.values())), "more rounds: --set rounds=N")
            say(f"{directory} is complete: there is nothing to do ({early})")
        return
    before = {label: (ended(one.run.path or directory) or {}).get("rounds") for label, one in simulations.items()}
    if changes and leads():
        write_comparison(directory, [(label, plan.setting()) for label, plan in named], {})
    _carry_out(simulations, directory, options)
    for label, one in simulations.items():
        if leads() and len(one.run.history) == before[label] and (why := _ended_early(one)):
            say(f"{label}: no round was added; {why}")


def _ended_early(simulation: "Simulation") -> str:
    """Why a run has ended before its last round, and how it goes on; empty: it has not."""
    done, out = len(simulation.run.history), simulation.out
    if done >= simulation.plan.rounds:
        return ""
    if out is not None and not (out / "checkpoint").exists():
        return (
            f"it ended in round {done}, and there is no checkpoint to go on from: none larger than --keep allows was "
            "kept, or it was removed"
        )
    ways = {
        Status.REACHED: f"it ended at its target in round {done}: to go on, add --set target.stop=false",
        Status.GAVE_UP: f"it no longer improved in round {done}: to go on, add --set patience.rounds=N with a larger N",
    }
    return ways.get(simulation.run.status, "")


def _simulations(
    named: "Sequence[Named]", directory: Path, options: Mapping[str, Any], resume: bool = False
) -> dict[str, "Simulation"]:
    from feddyn.engine.memory import keep_freed_memory
    from feddyn.settings.documents import slug

    keep_freed_memory()
    places = {label: directory / slug(label) if len(named) > 1 else directory for label, _ in named}
    return {label: simulation(plan, places[label], options, resume) for label, plan in named}


def _carry_out(simulations: Mapping[str, "Simulation"], directory: Path, options: Mapping[str, Any]) -> None:
    """Run what is to be run, and show what came of it."""
    try:
        _train(simulations, options)
    except KeyboardInterrupt:
        interrupted(f"to go on: feddyn resume {directory}")

    def conclude() -> None:
        if leads():
            for label, simulation in simulations.items():
                for name in simulation.passed_over:
                    say(f"{label}: the checkpoint {name} was damaged; the run went on from the one before it")
            _conclude(simulations, directory)
        failed = [f"{label}: {s.run.message}" for label, s in simulations.items() if s.run.status is Status.DIVERGED]
        if failed:
            raise FeddynError("; ".join(failed))

    together(conclude)


@click.command()
def methods() -> None:
    """List the methods with their parameters."""
    from feddyn.settings.names import METHODS, SOLVERS
    from feddyn.settings.schema import parameters

    def signature(make: Any) -> str:
        return ", ".join(
            name if p.default is p.empty else f"{name} = {p.default}" for name, p in parameters(make).items()
        )

    rows = [[name, signature(m.algorithm) or "-", m.solver or "any", m.about] for name, m in METHODS.items()]
    show(Table("methods", ["algorithm.name", "parameters", "solver", "what it is"], rows))
    show(Table("solvers", ["solver.name", "parameters"], [[name, signature(s)] for name, s in SOLVERS.items()]))


def _train(simulations: Mapping[str, "Simulation"], options: Mapping[str, Any]) -> None:
    """Run one method after the other; one that diverges does not keep the others from running."""
    with progress("round") as report:
        for label, simulation in simulations.items():
            run, plan = simulation.run, simulation.plan
            try:
                with closing(rounds(simulation, label, options)) as lines:
                    for line in lines:
                        if line["round"] < plan.rounds:
                            report(label, line["round"], plan.rounds, figure(run.headline, line), plan.may_stop)
            except DivergenceError:
                pass  # its message stands in the run, and is raised when all methods had their turn
            report(label, len(run.history), len(run.history), run.outcome)


def _conclude(simulations: Mapping[str, "Simulation"], directory: Path) -> None:
    """The table and the plot, shown and saved beside the record."""
    from feddyn.reports.curves import convergence

    reference, first = next(iter(simulations.items()))
    model, metric = first.run.headline
    better = first.plan.evaluation.directions[metric]
    target = None if first.plan.target is None else first.plan.target.value
    title = "models transmitted"
    if target is not None:
        sign = ">=" if better == "higher" else "<="
        title += f" to reach {metric} {sign} {target:.4g}"
    summaries = {label: simulation.run.summary for label, simulation in simulations.items()}
    table = comparison(title, summaries, reference, model=model, metric=metric, target=target is not None)
    show(table)
    (directory / "table.md").write_text(table.markdown(), encoding="utf-8")
    histories = {label: simulation.run.history for label, simulation in simulations.items()}
    try:
        convergence(histories, directory / "convergence.png", metric=metric, better=better, model=model, target=target)
        say(f"record, table and plot: {directory}")
    except FeddynError as error:
        say(f"record and table: {directory} ({error})")
