"""How the authors' code draws the active devices, and what that does to counts where one device a round is active.

    FEDDYN_DATA=... python examples/drawn_again.py --row 'mnist-*-1'      # minutes; --help says more

A device is active with probability p, and a draw without any device is drawn again. The authors' code seeds the draw of
round t with t, and draws again with t + 1, t + 2, ...: the draws of the rounds that follow. So the active devices are

    P_t = d_s ,   s the first of t, t + 1, ... in whose draw d_s anybody is active ,

and a set of devices is active again, once for every empty draw before it. Of m = 100 devices with p = 0.01 a part of
(1 - p)^m = 37% of the draws is empty, and 100 rounds have 63 different sets; with p = 0.1 it is one in 38,000.
"""

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import click
import numpy as np

from feddyn.paper.catalogue import experiments
from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans


def schedule(rounds: int, devices: int, p: float) -> list[list[int]]:
    """The authors' active devices, round by round."""

    def active(t: int) -> list[int]:
        drawn: list[int] = np.flatnonzero(np.random.RandomState(t).uniform(size=devices) <= p).tolist()
        return drawn or active(t + 1)

    return [active(t) for t in range(rounds)]


@click.command()
@click.option("--row", default="mnist-*-1", show_default=True, help="Rows of participation-1pct, by a pattern.")
@click.option("--method", "methods", multiple=True, default=["feddyn", "fedavg"], show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of the data, the initial model and the batches.")
@click.option("--lower", is_flag=True, help="Stop at the lower target.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/drawn-again"), show_default=True)
@click.option("--workers", default=1, show_default=True)
def main(row: str, methods: Sequence[str], seed: int, lower: bool, out: Path, workers: int) -> None:
    """Models transmitted to the targets of the paper's rows with 1%, with the authors' active devices."""
    table = experiments()["participation-1pct"]
    for job in (job for job in table.jobs if fnmatch(job.row, row) and job.method in methods):
        active = schedule(job.document["rounds"], job.document["population"]["devices"], job.document["participation"])
        targets = [min(job.targets)] if lower else sorted(job.targets)
        last = {"metric": "accuracy", "value": targets[-1], "model": "all"}
        ((_, plan),) = plans({**job.setting(seed), "participation": active, "target": last})
        simulation = Simulation(plan, out / job.directory(seed), workers=workers, resume=True)
        for _ in simulation:
            pass
        history = simulation.run.history
        for target in targets:
            found = next((line for line in history if line["models"]["all"]["accuracy"] >= target), None)
            ours = f"{found['transmitted']:g}" if found else f"{history[-1]['transmitted']:g}+"
            printed = getattr(table.printed[job.row, round(100 * target, 4)], job.method)
            click.echo(f"{job.row}, {target:.1%}, {job.label}, seed {seed}: {ours} (paper: {printed})")


if __name__ == "__main__":
    main()
