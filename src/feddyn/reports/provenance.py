"""When and with what runs were computed, by their records."""

from collections.abc import Sequence

from feddyn.records.reader import RunRecord
from feddyn.views.tables import Table

COLUMNS = {
    "processor": "processor",
    "cores": "cores",
    "PyTorch": "torch",
    "Python": "python",
    "feddyn": "feddyn",
    "system": "machine",
}
UNKNOWN = "not recorded"


def provenance(records: Sequence[RunRecord]) -> Table:
    """A row for each machine and set of versions, with how many of the runs were begun there and the days."""
    found: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        begun = next(iter(record.sessions), {})
        where = tuple(begun.get(field, UNKNOWN) for field in COLUMNS.values())
        found.setdefault(where, []).append(begun.get("at", UNKNOWN).partition("T")[0])
    rows = []
    for where, days in sorted(found.items(), key=lambda item: (min(item[1]), item[0])):
        ends = dict.fromkeys((min(days), max(days)))
        rows.append([" to ".join(ends), str(len(days)), *where])
    notes = ["A run that went on elsewhere counts where it was begun. Older records do not say all of it."]
    return Table("when and where it was computed", ["begun", "runs", *COLUMNS], rows, notes)
