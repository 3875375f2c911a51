"""Which round of a run is the best one so far, and whether that is so long ago that the run gives up. Both follow from
the lines of the record alone, so that a run that was interrupted decides as one that was not."""

from feddyn.metrics import Better, Figures, Patience
from feddyn.records.layout import Line


class Watch:
    """Looks at the figure of one model, line after line; `best` is the first line with the best one, and `gives_up`
    says that patience is at its end."""

    def __init__(
        self, model: str, metric: str, better: Better, initial: dict[str, Figures], patience: Patience | None = None
    ):
        self.model, self.metric, self._sign, self._patience = model, metric, 1 if better == "higher" else -1, patience
        self.best: Line | None = None
        self.gives_up = False
        self._mark, self._since = self._sign * initial[model][metric], 0

    def take(self, line: Line) -> bool:
        """Look at a round; whether it is the best one so far."""
        if "models" not in line:
            return False
        value = self._sign * line["models"][self.model][self.metric]
        best = self.best is None or value > self._sign * self.best["models"][self.model][self.metric]
        if best:
            self.best = line
        if self._patience:
            if value > self._mark + self._patience.gain:
                self._mark, self._since = value, line["round"]
            self.gives_up = line["round"] - self._since >= self._patience.rounds
        return best
