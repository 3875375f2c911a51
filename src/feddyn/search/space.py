"""Hyperparameter searches: what a setting's [sweep] table asks for, as single settings (docs/settings.md).

Values are searched for each method of a comparison that has the key, as with --set.
"""

import copy
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from feddyn.checks import require_whole
from feddyn.errors import FeddynError, InputError, nearest
from feddyn.metrics import Better
from feddyn.settings.code import Code, is_own
from feddyn.settings.documents import WIRES, Document, anchored, expand, keys, slug
from feddyn.settings.schema import build

Values: TypeAlias = list[Any]
Kind: TypeAlias = Literal["grid", "random", "halving"]


@dataclass(frozen=True)
class Range:
    """Numbers between `low` and `high`, both included; `log`: evenly over magnitudes."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise InputError(f"low must be below high{', and above 0' if self.log else ''}")

    @property
    def whole(self) -> bool:
        """Whether whole numbers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)


@dataclass(frozen=True)
class Search:
    """How to search: all values (grid), so many `trials` of each method (random), or those with most of them given up
    early: every `reduction`-th goes on (halving)."""

    search: Kind = "grid"
    trials: int | None = None
    seed: int = 0
    reduction: int = 3

    def __post_init__(self) -> None:
        require_whole("sweep", "seed", self.seed, 0)
        require_whole("sweep", "reduction", self.reduction, 2)
        if (self.trials is None) != (self.search == "grid"):
            words = "tries all values: leave out trials" if self.search == "grid" else "needs trials, their number"
            raise InputError(f"sweep: the search {self.search!r} {words}")
        if self.trials is not None:
            require_whole("sweep", "trials", self.trials, 1)


@dataclass(frozen=True)
class SearchedMethod:
    """A method of the sweep: its setting, what is searched for it, and the code of one's own that it names."""

    label: str
    document: Document
    space: Mapping[str, Values | Range]
    code: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def candidate(self, changes: Mapping[str, Any]) -> "Candidate":
        """The candidate that is the method with these values."""
        document = copy.deepcopy(self.document)
        for path, value in changes.items():
            table, _, name = path.rpartition(".")
            (document.setdefault(table, {}) if table else document)[name] = value
        return Candidate(self.label, dict(changes), document)

    def first(self) -> "Candidate":
        """The candidate with the first of all values."""
        values = {key: values[0] if isinstance(values, list) else values.low for key, values in self.space.items()}
        return self.candidate(values)


class Candidate(NamedTuple):
    """A setting to try."""

    label: str
    changes: dict[str, Any]
    document: Document

    @property
    def name(self) -> str:
        """Directory name of this candidate's record."""
        unique = hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()[:8]
        return f"{slug(self.label)}-{unique}"

    @property
    def of_wires(self) -> bool:
        """Whether it is tried how messages are compressed, so that models differ in length."""
        return any(key.partition(".")[0] in WIRES for key in self.changes)

    @property
    def words(self) -> str:
        """The values that are tried, to be read."""
        values = self.changes.items()
        return ", ".join(
            f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}" for key, value in values
        )


class Outcome(NamedTuple):
    """What came of a candidate; `sent` models in all, `transmitted` until the target, None: not reached, and where it
    is searched how messages are compressed, the `bytes` until then. `curve` has a column for the rounds, the models
    transmitted until then and every figure of the model that counts; a figure of None is not finite. `setting` is the
    whole setting, empty where it was not kept."""

    candidate: Candidate
    status: str
    rounds: int
    sent: int
    transmitted: int | None
    metric: str
    value: float
    better: Better
    curve: Mapping[str, Sequence[float | None]] = {}
    setting: Mapping[str, Any] = {}
    bytes: int | None = None

    @property
    def figure(self) -> str:
        """The best figure, to be read."""
        return self.status if self.status == "diverged" else f"{self.metric} {self.value:.4f}"

    @property
    def rank(self) -> tuple[bool, bool, int, float]:
        """The smaller, the better: what did not diverge, what reached the target, with fewest transmissions (of models
        or, where these differ in length, of bytes), then the better figure."""
        worse = -self.value if self.better == "higher" else self.value
        return self.status == "diverged", self.transmitted is None, self.bytes or self.transmitted or 0, worse


def read(document: Document, folder: Path = Path()) -> tuple[Search, list[SearchedMethod]]:
    """A setting with a [sweep] table; code of one's own is looked for in `folder`. Candidates' names depend on it."""
    table = document.get("sweep")
    if not isinstance(table, dict):
        raise InputError("the setting has no [sweep] table: say there what to search")
    space = table.get("space")
    if not isinstance(space, dict) or not space:
        raise InputError("sweep.space is missing: give keys with lists of values, as in solver.lr = [1.0, 0.1]")
    search = build(Search, {key: value for key, value in table.items() if key != "space"}, "sweep")
    dimensions = {key: _dimension(key, value, search) for key, value in _flat(space)}
    methods, used, every = [], set[str](), set[str]()
    common = anchored({key: value for key, value in document.items() if key != "sweep"}, folder)
    singles = expand(common)
    for label, single in singles:
        code = Code(folder)
        known = keys(single, code)
        mine = {key: values for key, values in dimensions.items() if key in known}
        for key in mine:
            if len(singles) > 1 and key.partition(".")[0] not in ("algorithm", "solver"):
                raise InputError(f"sweep.space.{key}: in a comparison, search keys of algorithm and solver only")
        for key, values in {"loss": [single.get("loss")], **mine}.items():
            for name in filter(is_own, some(values)):
                code.resolve(name, key)
        if code.files:
            single["code"] = {**code.hashes, **single.get("code", {})}
        used |= set(mine)
        every |= known
        methods.append(SearchedMethod(label, single, mine, code.files))
    for key in dimensions:
        if key not in used:
            raise InputError(f"sweep.space.{key}: no method here has it; {nearest(key, every)}")
    return search, methods


def _flat(space: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys with dots: tables of TOML are nested."""
    for key, value in space.items():
        if isinstance(value, dict) and not {"low", "high"} & set(value):
            yield from ((f"{key}.{name}", inner) for name, inner in _flat(value))
        else:
            yield key, value


def _dimension(key: str, value: object, search: Search) -> Values | Range:
    where = f"sweep.space.{key}"
    if isinstance(value, list) and value:
        return value
    if isinstance(value, dict):
        if search.search == "grid":
            raise InputError(f"{where}: a grid needs a list of values, not a range; or use search = 'random'")
        try:
            return build(Range, value, where)
        except InputError as error:
            raise InputError(str(error) if where in str(error) else f"{where}: {error}") from None
    raise InputError(f"{where} must be a list of values or {{ low = ..., high = ... }}, not {value!r}")


def some(values: Values | Range) -> Values:
    """All values of a list, the ends of a range."""
    return values if isinstance(values, list) else [values.low, values.high]


def grid(method: SearchedMethod) -> list[Candidate]:
    """All combinations of a method's values."""
    lists = [values for values in method.space.values() if isinstance(values, list)]
    return [method.candidate(dict(zip(method.space, values, strict=True))) for values in itertools.product(*lists)]


def best(methods: Sequence[SearchedMethod], outcomes: Sequence[Outcome]) -> Document:
    """The best candidate of every method as one setting, for `feddyn run`."""
    winners = {}
    for method in methods:
        mine = [outcome for outcome in outcomes if outcome.candidate.label == method.label and outcome.rounds]
        if mine:
            winners[method.label] = min(mine, key=lambda outcome: outcome.rank).candidate.document
    if not winners:
        raise FeddynError("no candidate completed a round: there is no best one")
    first = next(iter(winners.values()))
    if len(methods) == 1:
        return first
    own = ("algorithm", "solver")
    code = {file: digest for winner in winners.values() for file, digest in winner.get("code", {}).items()}
    common = {key: value for key, value in first.items() if key not in own} | ({"code": code} if code else {})
    compare = [{"label": label, **{key: document[key] for key in own}} for label, document in winners.items()]
    return {**common, "compare": compare}
