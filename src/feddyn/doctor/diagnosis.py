"""All that is found of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from feddyn.doctor.diagnoses import DIAGNOSES
from feddyn.doctor.evidence import LEAST, Evidence, Finding
from feddyn.errors import InputError
from feddyn.records.files import home
from feddyn.records.layout import Status
from feddyn.records.reader import read
from feddyn.records.recorded import Recorded
from feddyn.views.html import rendered
from feddyn.views.tables import Table


@dataclass(frozen=True)
class Diagnosis:
    """What was found, and in how many rounds. Print it."""

    findings: Sequence[Finding]
    rounds: int

    @property
    def table(self) -> Table:
        """A row a finding."""
        rows = [
            [one.name, one.words, "; ".join(f"{name}: {value}" for name, value in one.figures.items()), one.advice]
            for one in self.findings
        ]
        return Table(self._verdict, ["finding", "what is going on", "judged by", "what to try"], rows)

    @property
    def _verdict(self) -> str:
        if self.findings:
            return (
                f"{len(self.findings)} {'finding' if len(self.findings) == 1 else 'findings'} in {self.rounds} rounds"
            )
        early = f"; of how it develops nothing can be said before round {LEAST}" if self.rounds < LEAST else ""
        return f"nothing found in {self.rounds} rounds{early}"

    def __str__(self) -> str:
        return "\n".join([self._verdict, *(f"- {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        return rendered([self.table])


def diagnose(run: "Recorded | str | PathLike[str]") -> Diagnosis:
    """What is going on in a run, or in that whose record is in a directory: instability, drift, clipping, a device that
    dominates, devices that were never active, a plateau, an alpha far from its useful range."""
    found = run if isinstance(run, Recorded) else read(home(Path(run)))
    if not found.history and found.status is not Status.DIVERGED:
        raise InputError(f"there is nothing to judge by: {found.message or 'the run has no rounds yet'}")
    evidence = Evidence(found)
    return Diagnosis([one for one in (judge(evidence) for judge in DIAGNOSES) if one], len(found.history))
