"""What `feddyn reproduce` makes in other ways than by single runs: the synthetic grid, a figure without training, and
the searches."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddyn.cli.data import provide
from feddyn.cli.interrupts import interrupted
from feddyn.cli.show import progress, say, show
from feddyn.data.datasets.synthetic import KINDS
from feddyn.errors import InputError
from feddyn.views.tables import Table, duration

if TYPE_CHECKING:
    from feddyn.cli.outlook import Choice
    from feddyn.paper.estimate import Calibration
    from feddyn.paper.synthetic import Curve, GridBatch
    from feddyn.settings.documents import Document


class Special(ABC):
    """A table or figure, what it is made of, and how to make it."""

    kind: str
    title: str
    rows: Sequence[str] = ()
    methods: Sequence[str] = ()
    runs: int = 0

    @abstractmethod
    def estimate(self, calibration: "Calibration") -> float:
        """Seconds that it takes on this machine."""

    @abstractmethod
    def go(self, choice: "Choice", budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]) -> None:
        """Make it, or with `dry_run` say what that would take."""


class Synthetic(Special):
    """The whole grid of the synthetic problem, in batches, kept job by job."""

    kind = "table"
    title = "the convex synthetic problem: 42 settings on four kinds of heterogeneity"
    rows = KINDS
    runs = 168

    def estimate(self, calibration: "Calibration") -> float:
        from feddyn.paper import synthetic

        return self._seconds(synthetic.jobs([0]), calibration.workers)

    def _seconds(self, todo: "Sequence[GridBatch]", workers: int) -> float:
        """Seconds that the grid takes, estimated from two rounds of each length, on one kind of data."""
        import time
        from dataclasses import replace

        import torch

        from feddyn.paper import synthetic
        from feddyn.round.rehearsal import confined

        pace = {}
        for job in todo:
            if (shape := (len(job.cells), job.cells[0].length)) not in pace:
                times = []
                for rounds in (1, 3):
                    clock = time.perf_counter()
                    with confined(torch.device("cpu")):  # as in the processes that train
                        synthetic.train(replace(job, rounds=rounds))
                    times.append(time.perf_counter() - clock)
                pace[shape] = (times[1] - times[0]) / 2
        return sum(job.rounds * pace[len(job.cells), job.cells[0].length] for job in todo) / workers

    def go(self, choice: "Choice", budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]) -> None:
        from feddyn.engine.executors.forked import cores
        from feddyn.paper import published, synthetic
        from feddyn.paper.study import Budget
        from feddyn.records.files import refuse_links
        from feddyn.records.lines import append_lines
        from feddyn.reports.synthetic import tables

        rounds, seeds = choice.rounds or synthetic.ROUNDS, range(choice.seeds)
        workers, time = options["workers"] or cores(), Budget(budget)
        kinds = [kind for kind in KINDS if choice.row(kind)]
        file = out / "synthetic" / "curves.jsonl"
        curves = {_identity(curve): curve for curve in _read(file, rounds)}
        jobs = synthetic.jobs(seeds, rounds, kinds)
        todo = [job for job in jobs if any((job.kind, job.seed, cell) not in curves for cell in job.cells)]
        if dry_run:
            left = sum(len(job.cells) for job in todo)
            say(f"{left} of {sum(len(job.cells) for job in jobs)} runs to go, in {len(todo)} batches")
            say(f"about {duration(self._seconds(todo, workers))} on this machine, by a short calibration")
            return
        refuse_links(file.parent, itself=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        steps, done = sum(job.steps for job in jobs), sum(job.steps for job in jobs if job not in todo)
        try:
            with progress("step") as report, closing(synthetic.run(todo, workers)) as running:
                for job, finished in running:
                    append_lines(file, (curve.as_line() for curve in finished))
                    curves |= {_identity(curve): curve for curve in finished}
                    done += job.steps
                    report("grid", done, steps, f"{job.kind}, {len(job.cells)} settings of the grid")
                    if time.left <= 0:
                        break
        except KeyboardInterrupt:
            interrupted("the same command goes on from here")
        whole = [
            kind
            for kind in kinds
            if all((job.kind, job.seed, c) in curves for job in jobs if job.kind == kind for c in job.cells)
        ]
        if not whole:
            say(f"no problem is complete yet in {file.parent}; the same command goes on with them")
            return
        kept = [curve for curve in curves.values() if curve.kind in whole and curve.seed in seeds]
        optima = {(kind, seed): synthetic.best(kind, seed) for kind in whole for seed in seeds}
        for table, stem in zip(
            tables(kept, optima, published.rows("synthetic"), rounds), ("table", "best"), strict=True
        ):
            show(table)
            table.save(file.parent, stem)
        say(f"tables and curves: {file.parent}")


def _identity(curve: "Curve") -> tuple[str, int, object]:
    return curve.kind, curve.seed, curve.cell


def _read(file: Path, rounds: int) -> "list[Curve]":
    """The first so many rounds of the curves that are there and have them."""
    from dataclasses import replace

    from feddyn.paper.synthetic import Curve
    from feddyn.records.lines import read_lines

    curves = (curve for curve in read_lines(file, Curve.from_line) if len(curve.objectives) >= rounds)
    return [replace(curve, objectives=curve.objectives[:rounds]) for curve in curves]


class Heterogeneity(Special):
    """How many classes hold most of a device's data, for the splits of MNIST; nothing is trained."""

    kind = "figure"
    title = "the classes that hold 40%, 60% and 80% of a device's data, MNIST, 100 devices"
    rows = ("iid", "dirichlet0.6", "dirichlet0.3")

    def estimate(self, calibration: "Calibration") -> float:
        return 2.0

    def go(self, choice: "Choice", budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]) -> None:
        import numpy as np

        from feddyn.data.datasets import sources
        from feddyn.data.datasets.federations import split_labels
        from feddyn.records.files import refuse_links
        from feddyn.reports.heterogeneity import class_counts, histograms, table

        if dry_run:
            say("nothing is trained: a few seconds")
            return
        provide("mnist")
        labels = np.asarray(sources.load("mnist").y)
        splits = {"IID": ("iid", None), "Dirichlet (.6)": ("dirichlet", 0.6), "Dirichlet (.3)": ("dirichlet", 0.3)}
        counts = {}
        for (name, (split, concentration)), row in zip(splits.items(), self.rows, strict=True):
            if choice.row(row):
                parts = split_labels(labels, 100, split, concentration)  # type: ignore[arg-type]
                counts[name] = class_counts(labels, parts)
        directory = out / "heterogeneity"
        refuse_links(directory, itself=True)
        found: Table = table(counts)
        show(found)
        found.save(directory, "table")
        for suffix in ("png", "pdf"):
            histograms(counts, directory / f"histograms.{suffix}")
        say(f"table and figure: {directory}")


class Search(Special):
    """One of the paper's hyperparameter searches, as `feddyn sweep` makes them."""

    kind = "search"

    def __init__(self, name: str, title: str, rows: Sequence[str], runs: int):
        self.name, self.title, self.rows, self.runs = name, title, rows, runs

    def _documents(self) -> "Mapping[str, Document]":
        from feddyn.paper.searches import searches

        return searches()[self.name]

    def estimate(self, calibration: "Calibration") -> float:
        return sum(self._seconds(document, document["rounds"], calibration) for document in self._documents().values())

    def _seconds(self, document: "Document", rounds: int, calibration: "Calibration") -> float:
        from feddyn.search.space import grid, read

        _, methods = read(document)
        found = [candidate for method in methods for candidate in grid(method)]
        return sum(calibration.seconds(candidate.document, rounds) for candidate in found)

    def go(self, choice: "Choice", budget: float | None, out: Path, dry_run: bool, options: Mapping[str, Any]) -> None:
        from feddyn.cli.sweep import search
        from feddyn.engine.executors.forked import cores
        from feddyn.paper.estimate import Calibration

        if budget is not None:
            raise InputError(f"{self.name} has no --budget: interrupt it when you like, the same command goes on")
        documents = {row: document for row, document in self._documents().items() if choice.row(row)}
        calibration = Calibration(options["workers"] or cores())
        for row, document in documents.items():
            document = {**document, "rounds": choice.rounds or document["rounds"]}
            if dry_run:
                time = choice.seeds * self._seconds(document, document["rounds"], calibration)
                runs = choice.seeds * self.runs // len(self.rows)
                say(f"{row}: {runs} runs, about {duration(time)} on this machine, by a short calibration")
                continue
            for seed in range(choice.seeds):
                search({**document, "seed": seed}, out / self.name / f"{row}-s{seed}", options)


SPECIAL: Mapping[str, Special] = {
    "synthetic": Synthetic(),
    "heterogeneity": Heterogeneity(),
    "mnist-search": Search(
        "mnist-search",
        "the search of the MNIST hyperparameters, 100%, 100 rounds",
        ("iid", "dirichlet0.6", "dirichlet0.3"),
        162,
    ),
    "shakespeare-search": Search(
        "shakespeare-search", "the search of the Shakespeare hyperparameters, 100%, 150 rounds", ("iid", "natural"), 32
    ),
}
