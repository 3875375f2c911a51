"""Random values and successive halving, by Optuna."""

from typing import Any

from feddyn.errors import FeddynError
from feddyn.search.space import Candidate, Search, SearchedMethod


class Trials:
    """Optuna's side of a search for one method: it proposes values, and may give a trial up early."""

    def __init__(self, search: Search, method: SearchedMethod, rounds: int, maximise: bool):
        try:
            import optuna
        except ImportError:
            raise FeddynError("random search and halving need Optuna: pip install 'feddyn[sweep]'") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
        if search.search == "halving":
            least = max(1, rounds // search.reduction**3)
            pruner = optuna.pruners.SuccessiveHalvingPruner(least, search.reduction)
        self.method, self._complete = method, optuna.trial.TrialState.COMPLETE
        self._pruned = optuna.trial.TrialState.PRUNED
        self._study = optuna.create_study(
            sampler=optuna.samplers.RandomSampler(search.seed),
            pruner=pruner,
            direction="maximize" if maximise else "minimize",
        )

    def ask(self) -> Candidate:
        """The next candidate; the same ones in every search with this seed."""
        self._trial = self._study.ask()
        changes: dict[str, Any] = {}
        for key, values in self.method.space.items():
            if isinstance(values, list):
                changes[key] = values[self._trial.suggest_int(key, 0, len(values) - 1)]
            elif values.whole:
                changes[key] = self._trial.suggest_int(key, int(values.low), int(values.high), log=values.log)
            else:
                changes[key] = self._trial.suggest_float(key, values.low, values.high, log=values.log)
        return self.method.candidate(changes)

    def give_up(self, round: int, value: float) -> bool:
        """Note a figure of the trial; whether it is not worth going on."""
        self._trial.report(value, round)
        return self._trial.should_prune()

    def tell(self, value: float, given_up: bool) -> None:
        """Note how the trial ended."""
        if given_up:
            self._study.tell(self._trial, state=self._pruned)
        else:
            self._study.tell(self._trial, value)
