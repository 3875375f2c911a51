"""What docs/results prints is what its records give."""

import re
import statistics
from pathlib import Path

import pytest
from benchmarks.compression import table as compressed

from feddyn.paper.catalogue import experiments
from feddyn.records.lines import read_lines
from feddyn.records.reader import RunRecord, find
from feddyn.reports.paper import table
from feddyn.reports.records import entries

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


def seconds(record: RunRecord) -> list[float]:
    return [line["seconds"] for line in read_lines(record.path / "timings.jsonl", dict) if "round" in line]


def test_the_times_of_mnist_are_those_of_the_records() -> None:
    page = (RESULTS / "mnist.md").read_text()
    records = [record for record in RECORDS if record.setting["population"]["source"] == "mnist"]
    rows = re.findall(r"^\| (mnist\S+-s\d) \| (\d+) \| (\S+) s \| (\S+) min \|$", page, re.MULTILINE)
    expected = [
        (record.path.name[:-9], f"{len(spent)}", f"{statistics.median(spent):.2f}", f"{sum(spent) / 60:.1f}")
        for record, spent in zip(records, map(seconds, records), strict=True)
    ]
    assert rows == expected


def test_what_is_said_of_cifar_is_in_the_records() -> None:
    page = " ".join((RESULTS / "cifar.md").read_text().split())
    medians = []
    for entry in (e for x in ("alpha", "devices") for e in entries(experiments()[x], RECORDS)):
        record, label = entry.record, entry.job.label
        accuracies = [f"{value:.1%}" for value in record.figures]
        if len(accuracies) > 4:
            long = record
            accuracies[6:] = ["..."]
        else:
            medians.append(statistics.median(seconds(record)))
        if "alpha" in label or label != "FedDyn":
            assert f"| {label} | {len(record.history)} | {', '.join(accuracies)} |" in page
    assert f"A round takes {min(medians):.0f} to {max(medians):.0f} s" in page
    assert f"median {statistics.median(seconds(long)):.0f} s" in page
    for number in (25, 50, 75, 100, 150, 200):
        assert f"{long.figures[number - 1]:.1%} at {'round ' if number == 25 else ''}{number}" in page
    first = next(line["round"] for line in long.evaluated if line["models"]["all"]["accuracy"] >= 0.823)
    assert f"82.3% in {first} rounds" in page
    assert f"stopped at round {len(long.history)} with {long.figures[-1]:.2%} (best {long.best:.2%})" in page


def test_the_bytes_of_compressed_runs_are_those_of_their_records() -> None:
    page = (RESULTS / "compression.md").read_text()
    assert compressed(0.972, [RESULTS / "records", RESULTS / "compressed"]) in page
