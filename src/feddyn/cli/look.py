"""`feddyn show`, `feddyn compare` and `feddyn doctor`: records looked at; nothing is trained."""

from collections.abc import Sequence
from pathlib import Path

import click

from feddyn.cli.completion import records, single_records
from feddyn.cli.show import Place, fits, say, show
from feddyn.doctor.diagnosis import diagnose
from feddyn.errors import InputError
from feddyn.records.layout import is_record
from feddyn.records.reader import RunRecord, find, read
from feddyn.views.comparison import compare as beside_each_other
from feddyn.views.curves import AXES
from feddyn.views.portrait import devices as devices_table
from feddyn.views.portrait import portrait


def one_record(directory: Path) -> RunRecord:
    """The record of a single run."""
    require_record(directory)
    return read(directory)


def require_record(directory: Path) -> None:
    """Refuse a folder that has no record of a single run, and say where there is one."""
    if is_record(directory):
        return
    if not directory.exists():
        raise InputError(f"there is no folder {directory}: name that of a run's record")
    below = sorted(file.parent.name for file in directory.glob("*/setting.toml") if is_record(file.parent))
    hint = ""
    if below:
        hint = f"; it has {len(below)} runs, {', '.join(below[:4])}{', ...' if len(below) > 4 else ''}: name one"
    elif (file := directory / "setting.toml").exists():
        hint = f"; {file} is a settings file that was not run here: feddyn run {file} says where its record is"
    raise InputError(f"there is no record of a single run in {directory}{hint}")


@click.command("show", short_help="Describe a run: what was run, and what came of it.")
@click.argument("directory", type=Place(), shell_complete=single_records)
@click.option("--devices", is_flag=True, help="Also list the devices, those with the worst figures first.")
def show_run(directory: Path, devices: bool) -> None:
    """Describe the run whose record is in DIRECTORY: what was run, and what came of it."""
    record = one_record(directory)
    for table in portrait(record):
        show(table)
    if devices:
        metric = record.headline[1] if record.evaluated else None
        known = metric if metric in record.on_devices else None
        show(devices_table(record.on_devices, known, record.better if known else "higher"))


@click.command(short_help="Compare runs whose records are in or below directories.")
@click.argument("directories", nargs=-1, required=True, type=Place(), shell_complete=records)
@click.option("--metric", help="What is compared (default: what counts for the first run).")
@click.option("--model", type=click.Choice(["server", "active", "all"]), help="Of which model.")
@click.option("--target", type=float, help="Count what was sent until this figure was reached.")
@click.option("--over", type=click.Choice(list(AXES)), default="round", show_default=True, help="The plot's x axis.")
@click.option("--out", type=Place(), help="A file for the plot (.png, .pdf) or the table (.md, .csv).")
def compare(
    directories: Sequence[Path],
    metric: str | None,
    model: str | None,
    target: float | None,
    over: str,
    out: Path | None,
) -> None:
    """Compare all runs whose records are in or below DIRECTORIES: a column for each setting in which they differ, and
    runs that differ by their seed alone as one row."""
    records, left_out = find(directories)
    for why in left_out:
        say(f"left out: {why}", err=True)
    if not records:
        raise InputError(f"there is no record of an evaluated run in {', '.join(map(str, directories))}")
    found = beside_each_other(*records, metric=metric, model=model, target=target)
    show(next(filter(fits, (found.table, found.brief)), found.bare))
    if out is None:
        return
    if out.suffix in (".md", ".csv"):
        out.write_text(found.table.markdown() if out.suffix == ".md" else found.table.csv(), encoding="utf-8")
    elif out.suffix in (".png", ".pdf", ".svg"):
        found.plot(over).savefig(out, dpi=150)
    else:
        raise InputError(f"--out {out}: end the name in .png, .pdf or .svg for the plot, or .md or .csv for the table")
    say(f"written: {out}")


@click.command(short_help="Say what is going on in a run, and what to try.")
@click.argument("directory", type=Place(), shell_complete=single_records)
def doctor(directory: Path) -> None:
    """Say what is going on in the run whose record is in DIRECTORY, by which figures, and what to try."""
    for line in str(diagnose(one_record(directory))).splitlines():
        say(line)
