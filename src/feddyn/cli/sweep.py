"""`feddyn sweep`: search hyperparameters."""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feddyn.cli.data import provide
from feddyn.cli.engine import Live, engine, simulation
from feddyn.cli.show import progress, show
from feddyn.errors import DivergenceError
from feddyn.reports.tables import Table, transmitted

if TYPE_CHECKING:
    from feddyn.experiments.documents import Document
    from feddyn.experiments.search import Candidate, Method, Outcome, Search, Trials
    from feddyn.simulation.plan import Plan

SHOWN = 8
"""Candidates of a method in the table on the terminal; the file has all."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the runs (not of the search, which is in [sweep]).")
@click.option("--out", type=click.Path(path_type=Path), help="The directory to keep it in (default: runs/FILE-sweep).")
@engine
def sweep(file: Path, seed: int | None, out: Path | None, **options: Any) -> None:
    """Search the hyperparameters that the [sweep] table of a settings FILE asks for.

    Grid, random, or successive halving. The best setting of every method is written to best.toml, for `feddyn run`.
    The same command goes on with a search that was interrupted.
    """
    from feddyn.experiments.documents import read

    document = read(file)
    if seed is not None:
        document["seed"] = seed
    search(document, out or Path("runs") / f"{file.stem}-sweep", options)


def search(document: "Document", directory: Path, options: Mapping[str, Any]) -> None:
    """Carry out a search, or what is left of it, and show and write down what it found."""
    import tomli_w

    from feddyn.experiments.search import best, read
    from feddyn.simulation.files import write_whole

    if isinstance(population := document.get("population"), dict):
        provide(population.get("source"))
    how, methods = read(document)
    directory.mkdir(parents=True, exist_ok=True)
    study = _Study(directory, options)
    try:
        with progress("candidate") as report:
            for done, total, outcome in study.outcomes(how, methods):
                figure = f"{_say(outcome)}: {outcome.metric} {outcome.value:.4f}"
                report(outcome.candidate.label, done, total, figure)
    except KeyboardInterrupt:
        click.echo("feddyn: interrupted; the same command goes on from here", err=True)
        sys.exit(130)
    table = _table(methods, study.found)
    table.save(directory, "candidates")
    show(Table(table.title, table.columns, [row for row in table.rows if int(row[1]) <= SHOWN], table.notes))
    text = "# the best of a search; for feddyn run\n" + tomli_w.dumps(best(methods, study.found))
    write_whole(directory / "best.toml", [text.encode()])
    click.echo(f"the best setting: {directory / 'best.toml'}; all candidates: {directory / 'candidates.csv'}")


class _Study:
    """The outcomes of a search, kept one by one in trials.jsonl."""

    def __init__(self, directory: Path, options: Mapping[str, Any]):
        self.directory, self.options = directory, options
        self.found: list[Outcome] = []
        self._file = directory / "trials.jsonl"
        text = self._file.read_bytes() if self._file.exists() else b""
        lines = [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]
        self._known = {line.pop("name"): line for line in lines}
        self._shared: dict[str, Any] = {}

    def outcomes(self, how: "Search", methods: "Sequence[Method]") -> "Iterator[tuple[int, int, Outcome]]":
        """(done, of how many, outcome) as candidates of a method are completed."""
        found = self._grid(methods) if how.search == "grid" else self._sampled(how, methods)
        for done, total, outcome in found:
            self.found.append(outcome)
            if (name := outcome.candidate.name) not in self._known:
                self._known[name] = {**outcome._asdict(), "candidate": outcome.candidate.changes}
                line = {"name": name, **self._known[name]}
                with self._file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
            yield done, total, outcome

    def _grid(self, methods: "Sequence[Method]") -> "Iterator[tuple[int, int, Outcome]]":
        from feddyn.experiments.batch import batches
        from feddyn.experiments.search import grid

        done: dict[str, int] = {}
        todo = {method.label: grid(method) for method in methods}

        def count(outcome: "Outcome") -> "tuple[int, int, Outcome]":
            label = outcome.candidate.label
            done[label] = done.get(label, 0) + 1
            return done[label], len(todo[label]), outcome

        planned = []
        for candidate in (candidate for candidates in todo.values() for candidate in candidates):
            if known := self._again(candidate):
                yield count(known)
            else:
                planned.append((candidate, self._plan(candidate)))
        together, rest = batches(planned)
        for batch in together:
            for (candidate, plan), history in zip(batch.members, batch.histories(), strict=True):
                yield count(_outcome(candidate, plan, history, "batched"))
        for candidate, plan in rest:
            yield count(self._run(candidate, plan, None))

    def _sampled(self, how: "Search", methods: "Sequence[Method]") -> "Iterator[tuple[int, int, Outcome]]":
        from feddyn.experiments.search import Trials

        assert how.trials is not None
        for method in methods:
            first = self._plan(method.candidate({}))
            _, metric = _metric(first)
            trials = Trials(how, method, first.rounds, metric == "accuracy")
            for number in range(how.trials):
                candidate = trials.ask()
                known = self._again(candidate) if how.search == "random" else None
                outcome = known or self._run(
                    candidate, self._plan(candidate), trials if how.search == "halving" else None
                )
                trials.tell(outcome.value, outcome.status == "given up")
                yield number + 1, how.trials, outcome

    def _again(self, candidate: "Candidate") -> "Outcome | None":
        from feddyn.experiments.search import Outcome

        line = self._known.get(candidate.name)
        return Outcome(**{**line, "candidate": candidate}) if line else None

    def _plan(self, candidate: "Candidate") -> "Plan":
        from feddyn.experiments.setting import plans

        ((_, plan),) = plans(candidate.document, shared=self._shared)
        return plan

    def _run(self, candidate: "Candidate", plan: "Plan", trials: "Trials | None") -> "Outcome":
        """Train a candidate, with a record, unless it is given up before or is there already."""
        from feddyn.experiments.study import lines

        model, metric = _metric(plan)
        directory = self.directory / candidate.name

        def hopeless(line: Mapping[str, Any]) -> bool:
            return (
                trials is not None and "models" in line and trials.give_up(line["round"], line["models"][model][metric])
            )

        for place, line in enumerate(history := lines(directory)):
            if hopeless(line):
                return _outcome(candidate, plan, history[: place + 1], "given up")
        if known := self._again(candidate):
            return known
        trained = simulation(plan, directory, self.options)
        status = trained.run.status
        live = Live(self.options, directory, candidate.label, candidate.document)
        try:
            rounds = iter(trained)
            for line in rounds if status == "running" else ():
                live.line(line)
                if line["round"] > len(history) and hopeless(line):
                    rounds.close()  # type: ignore[attr-defined]
                    return _outcome(candidate, plan, trained.run.history, "given up")
        except DivergenceError:
            pass
        finally:
            live.close(trained.run.status)
            trained.federation.trainer.store.clear()  # the next candidate needs the memory
        return _outcome(candidate, plan, trained.run.history, trained.run.status)


def _metric(plan: "Plan") -> tuple[str, str]:
    """Which model and figure count: the target's, else the `all` model's accuracy, where there is a test set."""
    if plan.target:
        return plan.target.model, plan.target.metric
    model = "all" if "all" in plan.evaluation.models else plan.evaluation.models[-1]
    return model, "accuracy" if plan.population.test is not None else "objective"


def _outcome(candidate: "Candidate", plan: "Plan", history: Sequence[Mapping[str, Any]], status: str) -> "Outcome":
    from feddyn.experiments.search import Outcome

    model, metric = _metric(plan)
    lines = [line for line in history if "models" in line]
    values = [value for line in lines if math.isfinite(value := line["models"][model][metric])]
    reached = None
    if target := plan.target:
        reached = next((line["transmitted"] for line in lines if target.reached(line["models"])), None)
    value = max(values, default=0.0) if metric == "accuracy" else min(values, default=sys.float_info.max)
    sent = history[-1]["transmitted"] if history else 0
    return Outcome(candidate, status, len(history), sent, reached, metric, value)


def _say(outcome: "Outcome") -> str:
    values = outcome.candidate.changes.items()
    return ", ".join(
        f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}" for key, value in values
    )


def _table(methods: "Sequence[Method]", found: "Sequence[Outcome]") -> Table:
    rows = []
    for method in methods:
        mine = {outcome.candidate.name: outcome for outcome in found if outcome.candidate.label == method.label}
        for place, outcome in enumerate(sorted(mine.values(), key=lambda outcome: outcome.rank), 1):
            words = _say(outcome) or "as it is"
            count = transmitted(outcome.transmitted, outcome.sent) if "target" in method.document else "-"
            figure = f"{outcome.metric} {outcome.value:.4f}"
            rows.append([method.label, str(place), words, count, figure, str(outcome.rounds), outcome.status])
    columns = ["method", "rank", "values", "models transmitted until the target", "best figure", "rounds", "status"]
    return Table("candidates, the best of each method first", columns, rows)
