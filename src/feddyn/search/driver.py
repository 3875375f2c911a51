"""Carrying out a search: candidates are trained, batched where they can be, and their outcomes kept as they come."""

import math
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w

from feddyn.errors import DivergenceError, InputError
from feddyn.metrics import BUILT_IN, best, headline
from feddyn.models.flat import FlatModel
from feddyn.records import comparison
from feddyn.records.files import refuse_links, write_code, write_whole
from feddyn.records.lines import append_lines, count, figure, read_lines, read_rounds, table, text
from feddyn.round.evaluation import Evaluator
from feddyn.runs.plan import Plan
from feddyn.runs.simulation import Start
from feddyn.search.batch import batches
from feddyn.search.sampling import Trials
from feddyn.search.space import Candidate, Outcome, grid, read, some
from feddyn.search.space import best as best_of
from feddyn.settings.building import blame, plans
from feddyn.settings.checking import draft
from feddyn.settings.documents import Document

FILE = "trials.jsonl"
GIVEN_UP = "given up"
Outcomes: TypeAlias = Generator[tuple[int, int, Outcome], None, None]


class Searching:
    """A search in a directory; `found` fills up. What is in the directory from before is not trained again. Without
    `batch`, every candidate has a record of its own. Code of one's own is looked for in `folder`."""

    def __init__(self, document: Document, directory: Path, start: Start, batch: bool = True, folder: Path = Path()):
        refuse_links(directory)
        if any((directory / name).exists() for name in ("setting.toml", comparison.FILE)):
            raise InputError(
                f"{directory} has the record of a run or comparison: choose another directory for the search"
            )
        self.how, self.methods = read(document, folder)
        self.directory, self._start, self._batch, self._folder = directory, start, batch, folder
        self.found: list[Outcome] = []
        self._known = trials(directory)
        self._shared: dict[str, Any] = {}

    def sources(self) -> list[str]:
        """Check every value that is searched, without any data; the sources of the data that will be needed."""
        sources, refused = [], dict[str, str]()
        for method in self.methods:
            first = method.first()
            trials = [{**first.changes, key: value} for key, values in method.space.items() for value in some(values)]
            try:
                drafts = [draft(c.document, self._folder) for c in (first, *map(method.candidate, trials))]
                sources += [found.single["population"]["source"] for found in drafts]
            except InputError as error:
                refused[method.label] = str(error)
        if refused:
            raise InputError(blame(refused, len(self.methods)))
        return list(dict.fromkeys(sources))

    def outcomes(self) -> Outcomes:
        """(done, of how many, outcome) as candidates of a method are completed; then the best setting is written."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for done, total, outcome in self._grid() if self.how.search == "grid" else self._sampled():
            self.found.append(outcome)
            name = outcome.candidate.name
            if self._known.get(name, {}).get("status") != outcome.status:
                self._known[name] = {**outcome._asdict(), "candidate": outcome.candidate.changes}
                append_lines(self.directory / FILE, [{"name": name, **self._known[name]}])
            yield done, total, outcome
        for method in self.methods:
            write_code(self.directory, method.code)
        words = "# the best of a search; for feddyn run\n" + tomli_w.dumps(best_of(self.methods, self.found))
        write_whole(self.directory / "best.toml", [words.encode()])

    @property
    def without_a_round(self) -> list[str]:
        """The methods of which no candidate completed a round, so that none is the best."""
        trained = {outcome.candidate.label for outcome in self.found if outcome.rounds}
        return [method.label for method in self.methods if method.label not in trained]

    def known(self) -> list[Outcome] | None:
        """The outcomes of a grid of which all candidates were trained before; None: some were not."""
        found = [self._again(candidate) for method in self.methods for candidate in grid(method)]
        if None in found:
            return None
        self.found = [outcome for outcome in found if outcome]
        return self.found

    def _grid(self) -> Iterator[tuple[int, int, Outcome]]:
        done: dict[str, int] = {}
        todo = {method.label: grid(method) for method in self.methods}

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

    def _sampled(self) -> Iterator[tuple[int, int, Outcome]]:
        how = self.how
        assert how.trials is not None
        for method in self.methods:
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


def trials(directory: Path) -> dict[str, dict[str, Any]]:
    """What a directory has of the candidates of a search, by their names: the fields of their outcomes, where in the
    place of the candidate are the values that it tried."""
    return dict(read_lines(directory / FILE, _known))


def _known(line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a file says of a candidate, by its name."""
    name = text(line, "name")
    for word in ("status", "metric"):
        text(line, word)
    for word in ("rounds", "sent", *(word for word in ("transmitted", "bytes") if line.get(word) is not None)):
        count(line, word)
    figure(line, "value", sys.float_info.max)
    curve = table(line.setdefault("curve", {}), "curve")
    for word in ("candidate", "setting"):
        table(line.setdefault(word, {}), word)
    for word, values in curve.items():
        if not isinstance(values, list) or len(values) != len(curve.get("round", ())):
            raise ValueError(f"the column {word} of the curve has not a value for each of its rounds")
        for value in values:
            if value is not None:
                figure({word: value}, word, sys.float_info.max)
    return name, {word: line.get(word) for word in Outcome._fields}


def _metric(plan: Plan) -> tuple[str, str]:
    """The model and the metric that count, before anything is trained."""
    flat = FlatModel(plan.model, plan.loss)
    population = plan.population.to(flat.theta.dtype, flat.theta.device)
    names = Evaluator(flat, population, 0.0, plan.evaluation.metrics).names
    return headline(plan.setting(), dict.fromkeys(plan.evaluation.models, names))


def _outcome(candidate: Candidate, plan: Plan, history: Sequence[Mapping[str, Any]], status: str) -> Outcome:
    model, metric = _metric(plan)
    better = plan.evaluation.directions[metric]
    evaluated = [line for line in history if "models" in line]
    values = [value for line in evaluated if math.isfinite(value := line["models"][model][metric])]
    reached = volume = None
    if target := plan.target:
        hits = (line for line in evaluated if target.reached(line["models"], plan.evaluation.directions))
        if line := next(hits, None):
            reached = line["transmitted"]
            volume = line["bytes_up"] + line["bytes_down"] if candidate.of_wires else None
    sent = history[-1]["transmitted"] if history else 0
    value = best(values, better) if values else math.copysign(sys.float_info.max, -1 if better == "higher" else 1)
    curve: dict[str, list[float | None]] = {
        word: [line[word] for line in evaluated] for word in ("round", "transmitted")
    }
    for name in evaluated[0]["models"][model] if evaluated else ():
        figures = [line["models"][model][name] for line in evaluated]
        curve[name] = [value if math.isfinite(value) else None for value in figures]
    setting = plan.setting()
    return Outcome(candidate, status, len(history), sent, reached, metric, value, better, curve, setting, volume)
