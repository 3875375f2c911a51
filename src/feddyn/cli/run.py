"""`feddyn run`, `feddyn resume` and `feddyn methods`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import feddyn
from feddyn.cli.comparison import read_comparison, write_comparison
from feddyn.cli.data import provide
from feddyn.cli.engine import engine, rounds, simulation
from feddyn.cli.show import leads, new, progress, show
from feddyn.errors import DivergenceError, FeddynError
from feddyn.reports.tables import Table, comparison

if TYPE_CHECKING:
    from feddyn.runs.run import Run, Simulation
    from feddyn.settings.building import Named


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key (solver.lr=0.05); repeatable.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the data, the schedule, the model and the batches.")
@click.option("--out", type=click.Path(path_type=Path), help="A new directory for the record (default: under runs/).")
@engine
def run(file: Path | None, changes: Sequence[str], seed: int | None, out: Path | None, **options: Any) -> None:
    """Run a settings FILE; without one, compare four methods on the paper's synthetic problem.

    A run that was interrupted goes on with `feddyn resume`. Workers, memory and checkpoints do not change the result.
    Under torchrun, all ranks run the setting together.
    """
    from feddyn.records.record import claim, key
    from feddyn.settings.building import plans
    from feddyn.settings.documents import read

    file = file or Path(feddyn.__file__).parent / "settings" / "demo.toml"
    named = plans(read(file), changes, seed, folder=file.parent, fetch=provide)
    unique = key({"runs": [plan.setting() for _, plan in named]})[:8]
    directory = out or new(Path("runs"), f"{file.stem}-{unique}")
    simulations = _simulations(named, directory, options)
    if leads():
        claim(directory)
        write_comparison(directory, named)
    _carry_out(simulations, directory, options)


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@engine
def resume(directory: Path, **options: Any) -> None:
    """Go on with an interrupted run, or comparison, from its record in DIRECTORY, to the same bits."""
    from feddyn.records.files import refuse_links
    from feddyn.settings.building import Named, plans
    from feddyn.settings.documents import read

    refuse_links(directory)
    named = []
    runs = read_comparison(directory) or [(directory.name, read(directory / "setting.toml"))]
    for label, document in runs:
        named += [Named(label, plan) for _, plan in plans(document, folder=directory, fetch=provide)]
    simulations = _simulations(named, directory, options, resume=True)
    if all(simulation.run.status in ("finished", "target reached") for simulation in simulations.values()):
        if leads():
            click.echo(f"{directory} is complete: there is nothing to do")
        return
    _carry_out(simulations, directory, options)


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
        if leads():
            click.echo(f"feddyn: interrupted; to go on: feddyn resume {directory}", err=True)
        sys.exit(130)
    if leads():
        for label, simulation in simulations.items():
            for name in simulation.passed_over:
                click.echo(f"{label}: the checkpoint {name} was damaged; the run went on from the one before it")
        _conclude(simulations, directory)
    failed = [f"{label}: {s.run.message}" for label, s in simulations.items() if s.run.status == "diverged"]
    if failed:
        raise FeddynError("; ".join(failed))


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
            run, planned = simulation.run, simulation.plan.rounds
            model, metric = _metric(run)
            try:
                for line in rounds(simulation, label, options):
                    figure = f"{metric} {line['models'][model][metric]:.4f}" if "models" in line else ""
                    if line["round"] < planned:
                        report(label, line["round"], planned, figure)
            except DivergenceError:
                pass  # its message stands in the run, and is raised when all methods had their turn
            report(label, len(run.history), len(run.history), run.status)


def _conclude(simulations: Mapping[str, "Simulation"], directory: Path) -> None:
    """The table and the plot, shown and saved beside the record."""
    from feddyn.reports.curves import convergence

    reference, first = next(iter(simulations.items()))
    model, metric = _metric(first.run)
    target = None if first.plan.target is None else first.plan.target.value
    title = "models transmitted"
    if target is not None:
        title += f" to reach {metric} {'>=' if metric == 'accuracy' else '<='} {target:.4g}"
    summaries = {label: simulation.run.summary for label, simulation in simulations.items()}
    table = comparison(title, summaries, reference, model=model, metric=metric, target=target is not None)
    show(table)
    (directory / "table.md").write_text(table.markdown(), encoding="utf-8")
    histories = {label: simulation.run.history for label, simulation in simulations.items()}
    try:
        convergence(histories, directory / "convergence.png", metric=metric, model=model, target=target)
        click.echo(f"record, table and plot: {directory}")
    except FeddynError as error:
        click.echo(f"record and table: {directory} ({error})")


def _metric(run: "Run") -> tuple[str, str]:
    """Which model and figure to show: the target's, else the last model's accuracy, else its loss."""
    if target := run.setting.get("target"):
        return target["model"], target["metric"]
    model, figures = list(run.initial.items())[-1]
    return model, "accuracy" if "accuracy" in figures else "loss"
