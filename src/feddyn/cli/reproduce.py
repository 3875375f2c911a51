"""`feddyn reproduce`: tables of the paper, ours beside theirs."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from feddyn.cli.data import provide
from feddyn.cli.run import train
from feddyn.cli.show import new, progress, show
from feddyn.errors import FeddynError
from feddyn.reports.tables import Table


@click.group()
def reproduce() -> None:
    """Reproduce a table of the paper, ours beside theirs."""


@reproduce.command()
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many draws of the data.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each setting (default: 500).")
@click.option("--workers", type=click.IntRange(min=1), help="Processes (default: the cores).")
@click.option("--out", type=click.Path(path_type=Path), help="A new directory for the results (default: under runs/).")
def synthetic(seeds: int, rounds: int | None, workers: int | None, out: Path | None) -> None:
    """The whole grid of the synthetic problem: 42 settings on four problems."""
    from feddyn.data.synthetic import KINDS
    from feddyn.experiments import paper, synthetic
    from feddyn.reports.synthetic import tables
    from feddyn.simulation.record import claim

    rounds = rounds or synthetic.ROUNDS
    directory = claim(out or new(Path("runs"), "reproduce-synthetic"))
    todo = synthetic.jobs(range(seeds), rounds)
    optima = {(kind, seed): synthetic.best(kind, seed) for kind in KINDS for seed in range(seeds)}
    curves, steps, done = [], sum(job.steps for job in todo), 0
    with progress("step") as report, (directory / "curves.jsonl").open("x", encoding="utf-8") as file:
        for job, finished in synthetic.run(todo, workers or os.cpu_count() or 1):
            curves += finished
            file.writelines(json.dumps(curve.as_line()) + "\n" for curve in finished)
            done += job.steps
            report("grid", done, steps, f"{job.kind}, {len(job.cells)} settings of the grid")
    for table, stem in zip(tables(curves, optima, paper.rows("synthetic"), rounds), ("table", "best"), strict=True):
        show(table)
        (directory / f"{stem}.md").write_text(table.markdown(), encoding="utf-8")
        (directory / f"{stem}.csv").write_text(table.csv(), encoding="utf-8")
    click.echo(f"tables and curves: {directory}")


@reproduce.command()
@click.argument("names", nargs=-1)
@click.option("--epochs", type=click.IntRange(min=1), help="At most so many (default: the paper's 150 or 500).")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="A new directory for the records (default: under runs/).")
def centralised(names: Sequence[str], epochs: int | None, seed: int, out: Path | None) -> None:
    """The data sets and their centralised accuracies; NAMES: only these (mnist, cifar10, shakespeare-iid, ...)."""
    from feddyn.errors import InputError, nearest
    from feddyn.experiments.centralised import REFERENCES
    from feddyn.experiments.setting import plans
    from feddyn.reports.curves import convergence
    from feddyn.simulation.record import claim
    from feddyn.simulation.run import Simulation

    for name in names:
        if name not in REFERENCES:
            raise InputError(f"{name!r} is not a data set of the paper; {nearest(name, REFERENCES)}")
    directory = out or new(Path("runs"), "reproduce-centralised")
    simulations, absent = {}, {}
    for name in names or REFERENCES:
        try:
            provide(REFERENCES[name].population["source"])
            ((_, plan),) = plans(REFERENCES[name].document(epochs), seed=seed)
            simulations[name] = Simulation(plan, directory / name)
        except FeddynError as error:
            absent[name] = str(error)
    if not simulations:
        raise FeddynError("; ".join(absent.values()))
    claim(directory)
    train(simulations)
    rows = []
    for name, simulation in simulations.items():
        reference, run, population = REFERENCES[name], simulation.run, simulation.plan.population
        assert population.test is not None
        best = max(line["models"]["server"]["accuracy"] for line in run.history)
        last = run.history[-1]["models"]["server"]["accuracy"]
        counts = [f"{population.total:,}", f"{len(population.test[1]):,}"]
        size = f"{reference.model['name']}, {simulation.federation.model.size:,}"
        passes = f"{len(run.history)} of {reference.epochs}"
        rows.append([name, *counts, size, passes, f"{last:.2%}", f"{best:.2%}", f"{reference.accuracy}%"])
    columns = ["data set", "training", "test", "model, parameters", "epochs", "ours, last", "ours, best", "the paper's"]
    table = Table("centralised training", columns, rows, [f"{name}: {why}" for name, why in absent.items()])
    show(table)
    (directory / "table.md").write_text(table.markdown(), encoding="utf-8")
    histories = {name: simulation.run.history for name, simulation in simulations.items()}
    convergence(histories, directory / "convergence.png", metric="accuracy", model="server")
    click.echo(f"records, table and plot: {directory}")
