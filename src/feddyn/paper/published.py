"""The numbers that the paper prints, and nowhere else in this project."""

import csv
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """A row of one of the paper's tables: models transmitted to reach a target, as printed ('1000+': not reached)."""

    table: str
    group: str
    split: str
    dataset: str
    target: float
    feddyn: str
    scaffold: str
    fedavg: str
    fedprox: str


def rows(table: str) -> list[Row]:
    """The rows of a table."""
    with (Path(__file__).parent / "paper_tables.csv").open(newline="", encoding="utf-8") as file:
        return [
            Row(target=float(line.pop("target")), **line) for line in csv.DictReader(file) if line["table"] == table
        ]
