"""Carrying out a search: candidates are trained, batched where they can be, and their outcomes kept as they come."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from feddyn.errors import DivergenceError, InputError
from feddyn.metrics import BUILT_IN, best, headline
from feddyn.models.flat import FlatModel
from feddyn.records.lines import append_lines, count, figure, read_lines, read_rounds, text
from feddyn.round.evaluation import Evaluator
from feddyn.runs.plan import Plan
from feddyn.runs.simulation import Start
from feddyn.search.batch import batches
from feddyn.search.space import Candidate, Outcome, Search, SearchedMethod, Trials, grid, some
from feddyn.settings.building import blame, plans
from feddyn.settings.checking import draft

FILE = "trials.jsonl"
GIVEN_UP = "given up"


class Searching:
    """A search in a directory; `found` fills up. What is in the directory from before is not trained again. Without
    `batch`, every candidate has a record of its own. Code of one's own is looked for in `folder`."""

    def __init__(self, directory: Path, start: Start, batch: bool = True, folder: Path = Path()):
        self.directory, self._start, self._batch, self._folder = directory, start, batch, folder
        self.found: list[Outcome] = []
        self._known = dict(read_lines(directory / FILE, _known))
        self._shared: dict[str, Any] = {}

    def outcomes(self, how: Search, methods: Sequence[SearchedMethod]) -> Iterator[tuple[int, int, Outcome]]:
        """(done, of how many, outcome) as candidates of a method are completed."""
        for done, total, outcome in self._grid(methods) if how.search == "grid" else self._sampled(how, methods):
            self.found.append(outcome)
            name = outcome.candidate.name
            if self._known.get(name, {}).get("status") != outcome.status:
                self._known[name] = {**outcome._asdict(), "candidate": outcome.candidate.changes}
                append_lines(self.directory / FILE, [{"name": name, **self._known[name]}])
            yield done, total, outcome

    def _grid(self, methods: Sequence[SearchedMethod]) -> Iterator[tuple[int, int, Outcome]]:
        done: dict[str, int] = {}
        todo = {method.label: grid(method) for method in methods}

        def count(outcome: Outcome) -> tuple[int, int, Outcome]:
            label = outcome.candidate.label
            done[label] = done.get(label, 0) + 1
            return done[label], len(todo[label]), outcome

        planned = []
        for candidate in (candidate for candidates in todo.values() for candidate in candidates):
            if known := self._again(candidate):
                yield count(known)
            else:
                planned.append((candidate, self._plan(candidate)))
        together, rest = batches(planned) if self._batch else ([], planned)
        for batch in together:
            for (candidate, plan), (history, status) in zip(batch.members, batch.histories(), strict=True):
                yield count(_outcome(candidate, plan, history, status))
        for candidate, plan in rest:
            yield count(self._train(candidate, plan, None))

    def _sampled(self, how: Search, methods: Sequence[SearchedMethod]) -> Iterator[tuple[int, int, Outcome]]:
        assert how.trials is not None
        for method in methods:
            first = self._plan(method.first())
            trials = Trials(
                how, method, first.rounds, maximise=first.evaluation.directions[_metric(first)[1]] == "higher"
            )
            for number in range(how.trials):
                candidate = trials.ask()
                known = self._again(candidate) if how.search == "random" else None
                judge = trials if how.search == "halving" else None
                outcome = known or self._train(candidate, self._plan(candidate), judge)
                trials.tell(outcome.value, outcome.status == GIVEN_UP)
                yield number + 1, how.trials, outcome

    def _again(self, candidate: Candidate) -> Outcome | None:
        """What is known of a candidate that was not given up: another search may want more of one that was."""
        line = self._known.get(candidate.name)
        if not line or line["status"] == GIVEN_UP:
            return None
        return Outcome(**{"better": BUILT_IN.get(line["metric"], "higher"), **line, "candidate": candidate})

    def _plan(self, candidate: Candidate) -> Plan:
        ((_, plan),) = plans(candidate.document, shared=self._shared, folder=self._folder)
        return plan

    def _train(self, candidate: Candidate, plan: Plan, trials: Trials | None) -> Outcome:
        """Train a candidate, with a record, unless it is given up before or is there already."""
        model, metric = _metric(plan)
        directory = self.directory / candidate.name

        def hopeless(line: Mapping[str, Any]) -> bool:
            if trials is None or "models" not in line:
                return False
            return trials.give_up(line["round"], line["models"][model][metric])

        known = self._again(candidate)
        for place, line in enumerate(history := read_rounds(directory / "rounds.jsonl")):
            if hopeless(line) and not known:
                return _outcome(candidate, plan, history[: place + 1], GIVEN_UP)
        if known:
            return known
        run, rounds = self._start(plan, directory, candidate.label)
        with closing(rounds):
            try:
                for line in rounds:
                    if line["round"] > len(history) and hopeless(line):
                        return _outcome(candidate, plan, run.history, GIVEN_UP)
            except DivergenceError:
                pass  # the outcome says so
        return _outcome(candidate, plan, run.history, run.status)


def _known(line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a file says of a candidate, by its name."""
    name = text(line, "name")
    for word in ("status", "metric"):
        text(line, word)
    for word in ("rounds", "sent", *(() if line.get("transmitted") is None else ("transmitted",))):
        count(line, word)
    figure(line, "value", sys.float_info.max)
    return name, {word: line.get(word) for word in Outcome._fields}


def require_sound(methods: Sequence[SearchedMethod], folder: Path = Path()) -> list[str]:
    """Check every value that is searched, without any data; the sources of the data that will be needed."""
    sources, refused = [], dict[str, str]()
    for method in methods:
        first = method.first()
        trials = [{**first.changes, key: value} for key, values in method.space.items() for value in some(values)]
        try:
            candidates = (first, *map(method.candidate, trials))
            sources += [draft(candidate.document, folder).single["population"]["source"] for candidate in candidates]
        except InputError as error:
            refused[method.label] = str(error)
    if refused:
        raise InputError(blame(refused, len(methods)))
    return list(dict.fromkeys(sources))


def _metric(plan: Plan) -> tuple[str, str]:
    """The model and the metric that count, before anything is trained."""
    names = Evaluator(FlatModel(plan.model, plan.loss), plan.population, 0.0, plan.evaluation.metrics).names
    return headline(plan.setting(), dict.fromkeys(plan.evaluation.models, names))


def _outcome(candidate: Candidate, plan: Plan, history: Sequence[Mapping[str, Any]], status: str) -> Outcome:
    model, metric = _metric(plan)
    better = plan.evaluation.directions[metric]
    evaluated = [line for line in history if "models" in line]
    values = [value for line in evaluated if math.isfinite(value := line["models"][model][metric])]
    reached = None
    if target := plan.target:
        hits = (line for line in evaluated if target.reached(line["models"], plan.evaluation.directions))
        reached = next((line["transmitted"] for line in hits), None)
    sent = history[-1]["transmitted"] if history else 0
    value = best(values, better) if values else math.copysign(sys.float_info.max, -1 if better == "higher" else 1)
    return Outcome(candidate, status, len(history), sent, reached, metric, value, better)
