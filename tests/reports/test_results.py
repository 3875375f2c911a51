"""What docs/results prints is what its records give."""

from pathlib import Path

import pytest

from feddyn.paper.catalogue import experiments
from feddyn.reports.paper import table
from feddyn.reports.records import entries, find

RESULTS = Path(__file__).parents[2] / "docs" / "results"
RECORDS, _ = find([RESULTS / "records"])


@pytest.mark.parametrize("name", [name for name, e in experiments().items() if entries(e, RECORDS)])
def test_the_tables_are_those_of_the_records(name: str) -> None:
    pages = "\n".join(page.read_text() for page in RESULTS.glob("*.md"))
    rows = table(experiments()[name], entries(experiments()[name], RECORDS)).markdown().splitlines()
    for row in (row for row in rows if row.startswith("| ")):
        assert row in pages, row


def test_every_record_is_of_a_run_of_the_paper() -> None:
    """And of the setting that the project has for it now."""
    named = {entry.record.path.name for e in experiments().values() for entry in entries(e, RECORDS)}
    assert named == {record.path.name for record in RECORDS}
