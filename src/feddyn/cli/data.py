"""`feddyn data` and `feddyn partition`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from feddyn.cli.completion import data_sets
from feddyn.cli.show import Place, download_bar, new, say, show
from feddyn.errors import FeddynError
from feddyn.views.tables import Table


def provide(name: str) -> None:
    """Download a data set on its first use, with a progress bar; what has another name needs none."""
    from feddyn.data.datasets import sources
    from feddyn.data.datasets.published import ABOUT

    if name in ABOUT:
        sources.fetch(name, download_bar())


@click.group()
def data() -> None:
    """List, fetch, check and import the data sets."""


@data.command("list")
def list_data() -> None:
    """The data sets, and whether their files are there."""
    from feddyn.data.datasets import files, sources
    from feddyn.data.datasets.published import ABOUT

    rows = [[name, about, sources.state(name)] for name, about in ABOUT.items()]
    show(Table(f"data sets, kept in {files.home()} (FEDDYN_DATA)", ["name", "what", "here"], rows))


@data.command()
@click.argument("name", shell_complete=data_sets)
def fetch(name: str) -> None:
    """Download a data set, unless it is there."""
    from feddyn.data.datasets import sources

    sources.fetch(name, download_bar())
    say(f"{name}: {sources.state(name)}")


@data.command(short_help="Verify a data set's files by their checksums.")
@click.argument("name", shell_complete=data_sets)
def check(name: str) -> None:
    """Verify the files of a data set by their checksums and read them anew."""
    from feddyn.data.datasets import sources

    say(f"{name}: {sources.check(name)}")


@data.command("import", short_help="Take published files that lie below a folder.")
@click.argument("folder", type=Place())
def import_data(folder: Path) -> None:
    """Take the published files that lie below FOLDER: archives, or unpacked as torchvision and Debian do."""
    from feddyn.data.datasets import sources

    taken = sources.take_all(folder)
    for name, count in taken.items():
        whole = sources.state(name) == "yes"
        files = "1 file" if count == 1 else f"{count} files"
        say(f"{name}: {files}{'' if whole else ', which is not all of it: import the rest, or fetch it'}")
    if not taken:
        raise FeddynError(f"no published file with the right checksum lies below {folder}; see `feddyn data list`")


@click.command(short_help="Show how a split distributes classes over devices.")
@click.argument("name", shell_complete=data_sets)
@click.option("--devices", type=int, default=100, show_default=True)
@click.option("--iid", is_flag=True, help="At random, in equal parts.")
@click.option("--class-exact", is_flag=True, help="The same number of each class for every device.")
@click.option("--dirichlet", type=float, multiple=True, help="A class prior a device, with this concentration.")
@click.option("--dirichlet-by-class", type=float, multiple=True, help="A device prior a class (Hsu).")
@click.option("--shards", type=int, multiple=True, help="So many shards of one class a device (McMahan).")
@click.option("--sigma", type=float, default=0.0, help="Lognormal sizes, for --iid and --dirichlet.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--save", type=Place(), help="Save the split as a small file (with one split only).")
@click.option("--out", type=Place(), help="A new directory for the pictures (default: under runs/).")
def partition(
    name: str,
    devices: int,
    iid: bool,
    class_exact: bool,
    dirichlet: Sequence[float],
    dirichlet_by_class: Sequence[float],
    shards: Sequence[int],
    sigma: float,
    seed: int,
    save: Path | None,
    out: Path | None,
) -> None:
    """Show how a split distributes the classes of a data set over devices; several splits are compared."""
    from feddyn.data.datasets import sources
    from feddyn.data.datasets.federations import save_split, split_labels
    from feddyn.records.writer import claim
    from feddyn.reports import heterogeneity

    wanted: list[tuple[str, dict[str, Any]]] = [("IID", {"split": "iid"})] if iid else []
    wanted += [("class-exact", {"split": "class-exact"})] if class_exact else []
    wanted += [(f"Dirichlet {c:g}", {"split": "dirichlet", "concentration": c}) for c in dirichlet]
    wanted += [
        (f"Dirichlet {c:g} by class", {"split": "dirichlet-by-class", "concentration": c}) for c in dirichlet_by_class
    ]
    wanted += [(f"{k} shards", {"split": "shards", "classes_per_device": k}) for k in shards]
    if not wanted:
        raise click.UsageError("name a split, for example --dirichlet 0.3 or --iid")
    if save and len(wanted) > 1:
        raise click.UsageError("--save takes one split, and several are named")
    sources.require_images(name)
    provide(name)
    labels = sources.load(name).y
    parts = {label: split_labels(labels, devices, sigma=sigma, seed=seed, **how) for label, how in wanted}
    if save:
        save_split(next(iter(parts.values())), save)
    counts = {label: heterogeneity.class_counts(labels, split) for label, split in parts.items()}
    table = heterogeneity.table(counts)
    show(table)
    directory = claim(out or new(Path("runs"), f"partition-{name}"))
    (directory / "table.md").write_text(table.markdown(), encoding="utf-8")
    heterogeneity.histograms(counts, directory / "histograms.png")
    for label, split in counts.items():
        slug = label.lower().replace(" ", "-")
        heterogeneity.picture(f"{name}, {label}", split, directory / f"devices-{slug}.png")
    say(f"table and pictures: {directory}")
