"""The command line, and the only place that prints. PyTorch is imported by the commands that need it, not by --help."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.errors import DivergenceError, FeddynError

if TYPE_CHECKING:
    from feddyn.reports.tables import Table
    from feddyn.simulation.run import Run, Simulation


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="feddyn")
def cli() -> None:
    """Federated learning by dynamic regularization (FedDyn), exact, with its baselines."""


@cli.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key (solver.lr=0.05); repeatable.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the data, the schedule, the model and the batches.")
@click.option("--out", type=click.Path(path_type=Path), help="A new directory for the record (default: under runs/).")
def run(file: Path | None, changes: Sequence[str], seed: int | None, out: Path | None) -> None:
    """Run a settings FILE; without one, compare four methods on the paper's synthetic problem."""
    from feddyn.experiments import setting
    from feddyn.simulation.record import claim, key
    from feddyn.simulation.run import Simulation

    document = setting.read(file or Path(__file__).parent / "experiments" / "demo.toml")
    named = setting.plans(document, changes, seed)
    name = "demo" if file is None else file.stem
    unique = key({"runs": [plan.setting() for _, plan in named]})[:8]
    directory = out or _new(Path("runs"), f"{name}-{unique}")
    simulations = {
        label: Simulation(plan, directory / label.lower().replace(" ", "-") if len(named) > 1 else directory)
        for label, plan in named
    }
    claim(directory)
    _train(simulations)
    _conclude(simulations, directory)
    failed = [f"{label}: {s.run.message}" for label, s in simulations.items() if s.run.status == "diverged"]
    if failed:
        raise FeddynError("; ".join(failed))


@cli.command()
def methods() -> None:
    """List the methods with their parameters."""
    from feddyn.experiments.methods import METHODS, SOLVERS
    from feddyn.experiments.schema import parameters
    from feddyn.reports.tables import Table

    def signature(make: Any) -> str:
        return ", ".join(
            name if p.default is p.empty else f"{name} = {p.default}" for name, p in parameters(make).items()
        )

    rows = [[name, signature(m.algorithm) or "-", m.solver or "any", m.about] for name, m in METHODS.items()]
    _show(Table("methods", ["algorithm.name", "parameters", "solver", "what it is"], rows))
    _show(Table("solvers", ["solver.name", "parameters"], [[name, signature(s)] for name, s in SOLVERS.items()]))


@cli.command()
@click.argument("name", type=click.Choice(["synthetic"]))
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many draws of the data.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each setting (default: 500).")
@click.option("--workers", type=click.IntRange(min=1), help="Processes (default: the cores).")
@click.option("--out", type=click.Path(path_type=Path), help="A new directory for the results (default: under runs/).")
def reproduce(name: str, seeds: int, rounds: int | None, workers: int | None, out: Path | None) -> None:
    """Reproduce a table of the paper, ours beside theirs: the whole grid on the synthetic problem."""
    from feddyn.data.synthetic import KINDS
    from feddyn.experiments import paper, synthetic
    from feddyn.reports.synthetic import tables
    from feddyn.simulation.record import claim

    rounds = rounds or synthetic.ROUNDS
    directory = claim(out or _new(Path("runs"), f"reproduce-{name}"))
    todo = synthetic.jobs(range(seeds), rounds)
    optima = {(kind, seed): synthetic.best(kind, seed) for kind in KINDS for seed in range(seeds)}
    curves, steps = [], sum(job.steps for job in todo)
    done = 0
    with _progress("step") as report, (directory / "curves.jsonl").open("x", encoding="utf-8") as file:
        for job, finished in synthetic.run(todo, workers or os.cpu_count() or 1):
            curves += finished
            file.writelines(json.dumps(curve.as_line()) + "\n" for curve in finished)
            done += job.steps
            report("grid", done, steps, f"{job.kind}, {len(job.cells)} settings of the grid")
    for table, stem in zip(tables(curves, optima, paper.rows("synthetic"), rounds), ("table", "best"), strict=True):
        _show(table)
        (directory / f"{stem}.md").write_text(table.markdown(), encoding="utf-8")
        (directory / f"{stem}.csv").write_text(table.csv(), encoding="utf-8")
    click.echo(f"tables and curves: {directory}")


def _train(simulations: Mapping[str, "Simulation"]) -> None:
    """Run one method after the other; one that diverges does not keep the others from running."""
    with _progress("round") as report:
        for label, simulation in simulations.items():
            run, rounds = simulation.run, simulation.plan.rounds
            model, metric = _metric(run)
            try:
                for line in simulation:
                    figure = f"{metric} {line['models'][model][metric]:.4f}" if "models" in line else ""
                    if line["round"] < rounds:
                        report(label, line["round"], rounds, figure)
            except DivergenceError:
                pass  # its message stands in the run, and is raised when all methods had their turn
            report(label, len(run.history), len(run.history), run.status)


def _conclude(simulations: Mapping[str, "Simulation"], directory: Path) -> None:
    """The table and the plot, shown and saved beside the record."""
    from feddyn.reports.curves import convergence
    from feddyn.reports.tables import comparison

    reference, first = next(iter(simulations.items()))
    model, metric = _metric(first.run)
    target = None if first.plan.target is None else first.plan.target.value
    title = "models transmitted"
    if target is not None:
        title += f" to reach {metric} {'>=' if metric == 'accuracy' else '<='} {target:.4g}"
    summaries = {label: simulation.run.summary for label, simulation in simulations.items()}
    table = comparison(title, summaries, reference, target=target is not None)
    _show(table)
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


@contextmanager
def _progress(unit: str) -> Iterator[Any]:
    """A function (label, done, total, figure) that shows progress: live bars on a terminal, plain lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console()
    if not console.is_terminal:
        yield _plain_progress(unit)
        return
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figure]}"),
    )
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, Any] = {}

        def report(label: str, done: int, total: int, figure: str) -> None:
            if label not in tasks:
                tasks[label] = progress.add_task(label, total=total, figure="")
            progress.update(tasks[label], completed=done, total=total)
            if figure:
                progress.update(tasks[label], figure=figure)

        yield report


def _plain_progress(unit: str) -> Any:
    began = time.monotonic()
    started: dict[str, float] = {}
    shown: dict[str, int] = {}

    def report(label: str, done: int, total: int, figure: str) -> None:
        since = started.setdefault(label, began if not started else time.monotonic())
        tenth = 10 * done // max(total, 1)
        if tenth != shown.get(label, 0) or done == total:
            shown[label] = tenth
            spent = time.monotonic() - since
            rest = f"{spent:.0f} s" if done == total else f"{spent / done * (total - done):.0f} s left"
            click.echo(f"{label}: {unit} {done} of {total}, {figure}, {rest}")

    return report


def _new(parent: Path, name: str) -> Path:
    """A directory that does not exist: of this name, numbered if the name is taken."""
    directory, number = parent / name, 1
    while directory.exists():
        number += 1
        directory = parent / f"{name}-{number}"
    return directory


def _show(table: "Table") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(width=None if sys.stdout.isatty() else 160)
    frame = box.SIMPLE_HEAD if console.is_terminal else box.ASCII
    shown = RichTable(title=table.title, box=frame, title_justify="left")
    for column in table.columns:
        shown.add_column(column)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown, markup=False)
    for note in table.notes:
        console.print(note, markup=False, highlight=False)


def main() -> None:
    """The entry point: every error is one sentence on standard error with exit code 2."""
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit("feddyn: interrupted; what was recorded until then is kept")
    except click.ClickException as error:
        _fail(error.format_message())
    except FeddynError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror}")


def _fail(sentence: str) -> None:
    click.echo(f"feddyn: {sentence}", err=True)
    sys.exit(2)
