"""A leaderboard: methods x settings x seeds, every method tuned with the same budget, so that anybody can run it again.

In every setting each method first tries its candidates, at most `trials` of them, with a seed of their own for data,
schedule, model and batches; the best one then runs with the other seeds. All methods do the same local work, the
setting's, and are tuned and judged by the same `model`: the mean of all devices' (`all`, as in the paper's tables), the
mean of the active ones' or the server's. A model of its own for each would compare one device's with a mean of many.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from feddyn.checks import require_number, require_whole
from feddyn.errors import DivergenceError, InputError, nearest
from feddyn.metrics import best
from feddyn.records.files import refuse_links, write_code
from feddyn.records.layout import Status
from feddyn.records.reader import RunRecord
from feddyn.records.reader import read as read_record
from feddyn.runs.simulation import Start
from feddyn.search.space import Candidate, SearchedMethod, grid
from feddyn.search.space import read as read_space
from feddyn.search.tuned import read as read_tuned
from feddyn.search.tuned import write as write_tuned
from feddyn.settings.building import plans
from feddyn.settings.checking import draft
from feddyn.settings.documents import Document, slug

TAIL = 3
"""A run's figure at a round is the mean over so many evaluations until then: single rounds with few devices jump."""
MODELS = ("all", "active", "server")
TUNING = "tuning"
"""The folder of a setting's candidates."""
KEYS = ("seeds", "trials", "tuning_seed", "model", "reference", "setting", "method")


@dataclass(frozen=True)
class Contest:
    """A setting in which methods are compared; the target is a figure to reach, None: there is none."""

    name: str
    methods: Mapping[str, SearchedMethod] = field(repr=False)
    tuning_rounds: int
    target: float | None


class Job(NamedTuple):
    """A run to do, and where its record goes."""

    path: Path
    candidate: Candidate


@dataclass(frozen=True)
class Board:
    """What is compared, by which model, and where it is kept; `first` is the method that others are held against."""

    directory: Path
    contests: Sequence[Contest]
    seeds: Sequence[int]
    trials: int
    tuning_seed: int
    model: str
    first: str
    _tuned: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def tuning(self, contest: Contest, label: str) -> list[Job]:
        """The candidates of a method."""
        jobs = []
        for changes, document in ((found.changes, found.document) for found in grid(contest.methods[label])):
            document = _seeded(document, self.tuning_seed) | {"rounds": contest.tuning_rounds}
            if "evaluation" in document:
                document["evaluation"] = {key: v for key, v in document["evaluation"].items() if key != "devices"}
            candidate = Candidate(label, changes, document)
            jobs.append(Job(self.home(contest) / TUNING / candidate.name, candidate))
        return jobs

    def tuned(self, contest: Contest, label: str) -> dict[str, Any] | None:
        """The values that a method was tuned to, by the records of its candidates or, where these were left away, by
        what was kept of them; None: not all were tried. Candidates that have all ended are read once."""
        if (contest.name, label) in self._tuned:
            return self._tuned[contest.name, label]
        if not (self.home(contest) / TUNING).exists():
            return read_tuned(self.home(contest), self.model).get(label)
        tried = [(job.candidate.changes, finished(job.path)) for job in self.tuning(contest, label)]
        known = [(changes, record) for changes, record in tried if record is not None]
        if len(known) < len(tried):
            return None
        levels = [(level(record, self.model), changes) for changes, record in known]
        sound = [(value, changes) for value, changes in levels if not math.isnan(value)]
        chosen = known[0][0]
        if sound:  # otherwise all diverged, and so will the first one
            top = best([value for value, _ in sound], known[0][1].better)
            chosen = next(changes for value, changes in sound if value == top)
        self._tuned[contest.name, label] = chosen
        return chosen

    def keep_tuned(self) -> None:
        """Write down beside the runs of every setting what its methods were tuned to."""
        for contest in self.contests:
            found = {label: tuned for label in contest.methods if (tuned := self.tuned(contest, label)) is not None}
            if found:
                before = read_tuned(self.home(contest), self.model)
                write_tuned(self.home(contest), self.model, {**before, **found})

    def runs(self, contest: Contest, label: str) -> dict[int, Job]:
        """The runs of a method that is tuned, by their seeds."""
        tuned = self.tuned(contest, label)
        return {} if tuned is None else self.with_values(contest, label, tuned)

    def with_values(self, contest: Contest, label: str, values: dict[str, Any]) -> dict[int, Job]:
        """The runs of a method with some values, by their seeds."""
        made = {}
        for seed in self.seeds:
            candidate = Candidate(label, values, _seeded(contest.methods[label].candidate(values).document, seed))
            made[seed] = Job(self.home(contest) / f"{candidate.name}-s{seed}", candidate)
        return made

    def home(self, contest: Contest) -> Path:
        """Where a setting's records are."""
        return self.directory / slug(contest.name)


def read(document: Document, directory: Path, folder: Path = Path()) -> Board:
    """A leaderboard's document, checked in full before anything is trained."""
    for key in document:
        if key not in KEYS:
            raise InputError(f"{key} is not known in a leaderboard; {nearest(key, KEYS)}")
    seeds, trials = document.get("seeds", [0, 1, 2]), document.get("trials", 1)
    tuning_seed = document.get("tuning_seed", 1000)
    require_whole("", "trials", trials, 1)
    require_whole("", "tuning_seed", tuning_seed, 0)
    if not isinstance(seeds, list) or not seeds or len(set(map(str, seeds))) < len(seeds):
        raise InputError(f"seeds must be a list of different whole numbers, not {seeds!r}")
    for seed in seeds:
        require_whole("", "a seed", seed, 0)
    if tuning_seed in seeds:
        raise InputError(
            f"tuning_seed {tuning_seed} is one of seeds: methods would be tuned on what they are judged by"
        )
    if (model := document.get("model", "all")) not in MODELS:
        raise InputError(f"model: {model!r} is none that can be judged by; {nearest(str(model), MODELS)}")
    methods = document.get("method")
    contests = [_contest(table, methods, trials, model, folder) for table in _tables(document, "setting")]
    _require_apart([contest.name for contest in contests], "settings")
    labels = list(contests[0].methods)
    first = document.get("reference", "FedDyn" if "FedDyn" in labels else labels[0])
    if first not in labels:
        raise InputError(f"reference: {first!r} is no method of the leaderboard; {nearest(str(first), labels)}")
    return Board(directory, contests, seeds, trials, tuning_seed, model, first)


def _contest(table: Document, entries: object, trials: int, model: str, folder: Path) -> Contest:
    name, rounds = table.get("name"), table.get("rounds", 0)
    if not isinstance(name, str) or not slug(name):
        raise InputError(f"a [[setting]] of a leaderboard needs a name of letters and digits, not {name!r}")
    require_whole(f"setting {name}", "rounds", rounds, 1)
    tuning: Any = table.get("tuning_rounds", rounds)
    require_whole(f"setting {name}", "tuning_rounds", tuning, 1)
    common = {key: v for key, v in table.items() if key not in ("name", "tuning_rounds", "target")}
    target = table.get("target")
    if target is not None and (not isinstance(target, int | float) or isinstance(target, bool)):
        raise InputError(f"setting {name}: target must be a number to reach, not {target!r}")
    methods: dict[str, SearchedMethod] = {}
    for entry in _tables({"method": entries}, "method"):
        space, own = entry.get("space", {}), {key: v for key, v in entry.items() if key not in ("space", "work")}
        own["solver"] = _part(table.get("solver", {}), entry.get("work", 1.0)) | own.get("solver", {})
        sweep = {"sweep": {"space": space or {"rounds": [rounds]}}}
        try:
            _, (method,) = read_space({**common, "compare": [own], **sweep}, folder)
            method = method if space else replace(method, space={})
            for candidate in grid(method):
                if model not in draft(candidate.document, folder).evaluation.models:
                    raise InputError(f"methods are judged by the model {model!r}: name it in evaluation.models")
        except InputError as error:
            raise InputError(f"setting {name}: {error}") from None
        if (count := len(grid(method))) > trials:
            raise InputError(f"{method.label}: its space has {count} candidates, more than the {trials} trials of each")
        if method.label in methods:
            raise InputError(f"two methods are called {method.label!r}: give each a label of its own")
        methods[method.label] = method
    _require_apart(list(methods), "methods")
    return Contest(name, methods, tuning, target)


def _part(solver: Mapping[str, Any], part: object) -> Document:
    """So much of a setting's epochs or steps, for a method whose steps take more gradients than others'."""
    require_number("a [[method]] of a leaderboard", "work", part)
    assert isinstance(part, int | float)
    lengths = {key: solver[key] for key in ("epochs", "steps") if isinstance(solver.get(key), int)}
    return {key: max(1, round(length * part)) for key, length in lengths.items()} if part != 1 else {}


def _tables(document: Mapping[str, Any], key: str) -> list[Document]:
    tables = document.get(key)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"a leaderboard needs [[{key}]] tables")
    return tables


def _require_apart(names: Sequence[str], what: str) -> None:
    if len({slug(name) for name in names}) < len(names):
        raise InputError(f"two {what} of the leaderboard have the same name or nearly so: {', '.join(names)}")


def _seeded(document: Document, seed: int) -> Document:
    """The document with another seed, of the data too."""
    population = {key: value for key, value in document["population"].items() if key != "seed"}
    return {**document, "seed": seed, "population": population}


def finished(path: Path) -> RunRecord | None:
    """The record of a run that has ended, well or by divergence; None: it is not there, or goes on."""
    if not (path / "summary.json").exists():
        return None
    record = read_record(path)
    return record if record.status.ended else None


def level(record: RunRecord, model: str, rounds: int | None = None) -> float:
    """The figure that one of a run's models came to in its rounds, or in the first so many; of a run that diverged, or
    was not evaluated, NaN."""
    last = len(record.history) if rounds is None else rounds
    window = [line["models"] for line in record.evaluated if line["round"] <= last][-TAIL:]
    if record.status is Status.DIVERGED or not window:
        return math.nan
    return math.fsum(models[model][record.headline[1]] for models in window) / len(window)


def sources(board: Board) -> list[str]:
    """Where the data of all settings comes from."""
    documents = (method.document for contest in board.contests for method in contest.methods.values())
    return list(dict.fromkeys(document["population"]["source"] for document in documents))


class Step(NamedTuple):
    """A run that was done: of which setting, how many of how many, its words, and whether it is one that counts or one
    of the tuning."""

    contest: str
    done: int
    total: int
    words: str
    judged: bool


def play(board: Board, start: Start, folder: Path = Path()) -> Iterator[Step]:
    """Train what is not there yet, setting after setting: all candidates, then all methods with one seed after the
    other, so that what is there can be compared at any time."""
    refuse_links(board.directory)
    for contest in board.contests:
        tuning = [job for label in contest.methods for job in board.tuning(contest, label)]
        total, done = len(tuning) + len(board.seeds) * len(contest.methods), 0
        board.home(contest).mkdir(parents=True, exist_ok=True)
        for method in contest.methods.values():
            write_code(board.home(contest), method.code)
        shared: dict[str, Any] = {}
        for done, job in enumerate(tuning, 1):
            _train(job, start, folder, shared)
            label, words = job.candidate.label, job.candidate.words
            yield Step(contest.name, done, total, f"{label}, {words or 'as it is'}", False)
        shared.clear()  # the data of the other seeds is another
        for seed in board.seeds:
            for label in contest.methods:
                _train(board.runs(contest, label)[seed], start, folder, shared)
                done += 1
                yield Step(contest.name, done, total, f"{label}, seed {seed}", True)
            shared.clear()


def _train(job: Job, start: Start, folder: Path, shared: dict[str, Any]) -> None:
    if finished(job.path) is not None:
        return
    ((_, plan),) = plans(job.candidate.document, shared=shared, folder=folder)
    _, rounds = start(plan, job.path, job.candidate.label)
    with closing(rounds):
        try:
            for _ in rounds:
                pass
        except DivergenceError:
            pass  # its record says so
