"""`feddyn evaluate` and `feddyn export`: trained models used, and handed on."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.cli.completion import single_records
from feddyn.cli.data import provide
from feddyn.cli.look import one_record
from feddyn.cli.show import Place, say, show
from feddyn.records.layout import Status
from feddyn.views.naming import whose
from feddyn.views.portrait import devices as devices_table
from feddyn.views.tables import Table, figure

if TYPE_CHECKING:
    from feddyn.runs.run import Run

MODELS = click.Choice(["server", "active", "all", "best"])


@click.command(short_help="Evaluate a run's trained model on other data.")
@click.argument("directory", type=Place(), shell_complete=single_records)
@click.option(
    "--data", "named", metavar="FILE|NAME", help="Rows or arrays in a file, or a data set (default: its own)."
)
@click.option("--csv", type=Place(), help="Write the figures of every device to a CSV file.")
@click.option("--model", type=MODELS, help="Which model (default: the one that counts).")
def evaluate(directory: Path, named: str | None, csv: Path | None, model: Any) -> None:
    """Evaluate the trained model of the run in DIRECTORY on other data: all of it, each device's, and their spread.

    For a run on a table of one's own, a table with the same columns (CSV, Parquet, npz), with or without that of the
    devices; for others an npz file with the arrays x, y and, if there are several devices, device.
    """
    from feddyn.data.datasets.published import SOURCES
    from feddyn.settings.loading import load
    from feddyn.settings.new_data import data_for

    one_record(directory)
    run = load(directory)
    _warn(run)
    own = run.setting.get("population", {}).get("source")
    if (source := named or own) in SOURCES:
        provide(str(source))
    found = run.evaluate(data_for(run, named), model)
    name, count = model or run.headline[0], len(found.devices["device"])
    rows = [[metric, figure(value)] for metric, value in found.figures.items()]
    show(Table(f"{whose(name)} on {named or 'the data of its run'}", ["figure", "of all samples"], rows))
    if count > 1:
        spread = found.spread
        columns = list(next(iter(spread.values())))
        rows = [[metric, *(figure(row[column]) for column in columns)] for metric, row in spread.items()]
        show(Table(f"over {count} devices' own samples", ["figure", *columns], rows))
        metric = run.headline[1] if run.headline[1] in found.figures else next(iter(found.figures))
        show(devices_table(found.devices, metric, found.directions[metric]))
    if csv is not None:
        listed = [[str(column[k]) for column in found.devices.values()] for k in range(count)]
        csv.write_text(Table("", list(found.devices), listed).csv(), encoding="utf-8")
        say(f"written: {csv}")


@click.command(short_help="Write a run's trained model to a file for others.")
@click.argument("directory", type=Place(), shell_complete=single_records)
@click.option("--to", required=True, type=Place(), help="A new file: .pt, .safetensors or .onnx.")
@click.option("--model", type=MODELS, help="Which model (default: the one that counts).")
def export(directory: Path, to: Path, model: Any) -> None:
    """Write the trained model of the run in DIRECTORY to a file for others.

    .pt and .safetensors hold the state_dict, .onnx the whole computation from raw samples on, which of a table are its
    encoded rows (inputs.json says how).
    """
    from feddyn.settings.loading import load

    one_record(directory)
    run = load(directory)
    _warn(run)
    say(f"{whose(model or run.headline[0])}: {run.export(to, model)}")


def _warn(run: "Run") -> None:
    """Of a run that diverged, the models are the last ones before that."""
    if run.status is Status.DIVERGED:
        after = f"of round {len(run.history)}" if run.history else "that it began with"
        say(f"the run diverged: its models are those {after} (feddyn doctor {run.path})", err=True)
