"""The records that a report is made of, and which of them are runs of the paper's experiments."""

from collections.abc import Sequence
from dataclasses import dataclass

from feddyn.paper.catalogue import Experiment, PaperRun
from feddyn.paper.trials import reached
from feddyn.records.reader import RunRecord
from feddyn.settings.matching import is_run_of


@dataclass(frozen=True)
class Entry:
    """A run of an experiment of the paper."""

    job: PaperRun
    seed: int
    record: RunRecord

    @property
    def status(self) -> str:
        """How far the run is; one that reached its targets is paused there, and can go on."""
        if not self.record.status.ended:
            wanted = self.job.targets
            done = wanted and all(reached(self.record.history, target) for target in wanted)
            return "targets reached" if done else f"paused, {self.job.document['rounds']} planned"
        return self.record.status


@dataclass(frozen=True)
class Curve:
    """A run with what to call it."""

    label: str
    seed: int
    record: RunRecord
    status: str


@dataclass(frozen=True)
class Group:
    """Runs that belong into one plot, with what their figure that counts should reach, and the dotted keys of settings
    in which they differ."""

    name: str
    curves: Sequence[Curve]
    targets: Sequence[float] = ()
    keys: Sequence[str] = ()


def entries(experiment: Experiment, records: Sequence[RunRecord]) -> list[Entry]:
    """Those of the records that are an experiment's runs, by what their settings say; of copies the longest."""
    found = []
    for job in experiment.jobs:
        runs: dict[int, Entry] = {}
        for record in sorted(records, key=lambda one: len(one.history)):
            seed = record.setting.get("seed", 0)
            if is_run_of(record.setting, job.setting(seed)) and record.history[0]["transmitted"] > 0:
                runs[seed] = Entry(job, seed, record)
        found += [runs[seed] for seed in sorted(runs)]
    return found
