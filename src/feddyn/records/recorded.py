"""What can be told of any run, in memory or on disk, from its setting and its history."""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from feddyn.errors import FeddynError
from feddyn.metrics import Better, Figures, best, directions, headline, reaches, watched
from feddyn.records.layout import Status
from feddyn.records.lines import COUNTS

if TYPE_CHECKING:
    import pandas


class Recorded(ABC):
    """A run with its complete setting, a line a round, the figures of the initial model where they are known, how it
    ended, how many seconds it took (0: nobody knows), and its devices as columns (empty: they are not listed)."""

    setting: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    initial: Mapping[str, Figures]
    status: Status
    message: str
    seconds: float
    on_devices: Mapping[str, Sequence[Any]]

    @property
    def evaluated(self) -> list[Mapping[str, Any]]:
        """The rounds with figures."""
        return [line for line in self.history if "models" in line]

    @property
    def headline(self) -> tuple[str, str]:
        """The model and the metric that count."""
        last = next((line["models"] for line in reversed(self.history) if "models" in line), self.initial)
        return headline(self.setting, last)

    @property
    def better(self) -> Better:
        """Whether `higher` or `lower` figures of that metric are better."""
        return directions(self.setting)[self.headline[1]]

    @property
    def figures(self) -> list[float]:
        """The figure that counts, of every evaluated round."""
        model, metric = self.headline
        return [line["models"][model][metric] for line in self.evaluated]

    @property
    def best(self) -> float:
        """The best of them."""
        return best(self.figures, self.better)

    @property
    def watched(self) -> tuple[str, str]:
        """The model and the metric by which a round is the best one."""
        lines = self.evaluated
        return watched(self.setting, lines[-1]["models"] if lines else self.initial)

    @property
    def best_round(self) -> Mapping[str, Any] | None:
        """The first round with the best figure."""
        model, metric = self.watched
        values = [line["models"][model][metric] for line in self.evaluated]
        return self.evaluated[values.index(best(values, directions(self.setting)[metric]))] if values else None

    @property
    def columns(self) -> dict[str, list[float | None]]:
        """The history as columns: counts, and every figure by its dotted name (models.all.accuracy); None where a round
        has none."""
        counts: dict[str, list[float | None]] = {name: [line[name] for line in self.history] for name in COUNTS}
        rows = [dict(dotted(line)) for line in self.history]
        names = dict.fromkeys(name for row in rows for name in row)
        return counts | {name: [row.get(name) for row in rows] for name in names}

    def frame(self) -> "pandas.DataFrame":
        """The columns as a pandas.DataFrame, a row a round; needs pandas."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise FeddynError(
                "frame() needs pandas: pip install pandas, or take run.columns, a dict of lists that every table takes"
            ) from None
        return DataFrame(self.columns)

    @property
    def outcome(self) -> str:
        """How it ended, in words: a run that went on after it had reached its target is finished."""
        target = self.setting.get("target", {})
        if self.status is Status.REACHED and not target.get("stop", True) and (hit := self.first_at(target["value"])):
            return f"finished; target reached in round {hit['round']}"
        return self.status

    def first_at(self, value: float) -> Mapping[str, Any] | None:
        """The first evaluated round in which the figure that counts is as good as a value."""
        pairs, better = zip(self.evaluated, self.figures, strict=True), self.better
        return next((line for line, figure in pairs if reaches(figure, value, better)), None)


def dotted(line: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Every figure of a round by its dotted name."""
    found = []
    for kind in ("models", "on_devices"):
        for name, figures in line.get(kind, {}).items():
            found += [(f"{kind}.{name}.{key}", value) for key, value in figures.items()]
    for kind in ("norms", "devices", "broadcast"):
        found += [(f"{kind}.{name}", value) for name, value in line.get(kind, {}).items()]
    return found
