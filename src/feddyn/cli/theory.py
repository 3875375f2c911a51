"""`feddyn theory`."""

import sys
from collections.abc import Sequence
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path

import click

from feddyn.cli.completion import settings_files
from feddyn.cli.show import Place, progress, say, show
from feddyn.errors import FeddynError, InputError


@click.command(short_help="Check the paper's convergence theorems by machine.")
@click.option("--theorem", "patterns", multiple=True, help="Only these, by name or pattern ('feddyn-onegd-*').")
@click.option(
    "--paths",
    type=click.IntRange(min=2),
    default=32,
    show_default=True,
    help="Random paths to average; they cost little.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the problems and the paths.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes (default: the cores).")
@click.option("--out", type=Place(), default=Path("runs/theory"), show_default=True)
def theory(patterns: Sequence[str], paths: int, seed: int, workers: int | None, out: Path) -> None:
    """Check the paper's convergence theorems by machine: every bound, lemma and identity, in float64.

    Runs the exact algorithm with the alpha of each theorem on quadratics and logistic regression, for several m/P and
    heterogeneities. Exit code 1: something does not hold.
    """
    from feddyn.engine.executors.forked import cores
    from feddyn.engine.pool import each
    from feddyn.records.files import refuse_links
    from feddyn.reports import theory as report
    from feddyn.theory.verification import practice
    from feddyn.theory.verification.survey import DEVICES, THEOREMS, jobs, survey

    names = [name for name in THEOREMS if not patterns or any(fnmatch(name, pattern) for pattern in patterns)]
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in THEOREMS):
            raise InputError(f"--theorem {pattern}: no theorem of that name; there are {', '.join(THEOREMS)}")
    if out.is_file():
        raise InputError(f"--out {out} is a file: choose a directory for the tables")
    refuse_links(out)
    out.mkdir(parents=True, exist_ok=True)  # what cannot be written is better said before than after the work
    todo = jobs(names, paths, seed)
    results = {}
    with progress("check") as tell:
        with closing(survey(todo, workers or cores())) as running:
            for job, result in running:
                results[job] = result
                tell("theorems", len(results), len(todo), str(job))
        tried = practice.trials(paths, seed) if not patterns else []
        rounds = {}
        with closing(each(practice.rounds_needed, tried, workers or cores())) as running:
            for trial, needed in running:
                rounds[trial] = needed
                tell("alpha", len(rounds), len(tried), f"alpha {trial.alpha:g} L, m/P = {DEVICES // trial.P}")
    found = {job: results[job] for job in todo}
    tables = {name: report.theorem_table(name, found) for name in names}
    tables |= {"scaling": report.scaling_table(found), "lemmas": report.lemma_table(found)}
    tables |= {"identities": report.identity_table(found)}
    if tried:
        tables["alpha"] = report.practice_table({trial: rounds[trial] for trial in tried})
    for table in tables.values():
        show(table)
    for stem, table in tables.items():
        table.save(out, stem)
    report.points_table(found).save(out, "points")
    try:
        report.draw(found, out)
    except FeddynError as why:
        say(f"left out: the figure ({why})")
    broken = [job for job, result in found.items() if not (result.holds and result.steep_enough)]
    for job in broken:
        say(f"does not hold: {job}", err=True)
    say(f"{len(found) - len(broken)} of {len(found)} settings hold; tables, points and figure: {out}")
    if broken:
        sys.exit(1)


@click.command(short_help="Suggest alphas for a settings file.")
@click.argument("file", required=False, type=Place(), shell_complete=settings_files)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key; repeatable.")
@click.option("--devices", type=click.IntRange(min=1), default=10, show_default=True, help="Devices to try, at random.")
@click.option("--samples", type=click.IntRange(min=1), default=256, show_default=True, help="Of each, at most so many.")
def alpha(file: Path | None, changes: Sequence[str], devices: int, samples: int) -> None:
    """Which alpha theory and practice suggest for a settings FILE (without one, for the demo).

    Makes the model and the whole population, and estimates L, the devices' largest curvature at the model's start; see
    docs/theory.md on what that is worth.
    """
    import feddyn
    from feddyn.cli.data import provide
    from feddyn.settings.building import plans
    from feddyn.settings.documents import read

    file = file or Path(feddyn.__file__).parent / "settings" / "demo.toml"
    plan = plans(read(file), changes, folder=file.parent, fetch=provide)[0].plan
    advice = feddyn.suggest_alpha(
        plan.model,
        plan.population,
        plan.participation,
        loss=plan.loss,
        weight_decay=plan.local_solver.weight_decay,
        solver=plan.solver,
        devices=devices,
        samples=samples,
        seed=plan.seed,
    )
    for line in str(advice).splitlines():
        say(line)
