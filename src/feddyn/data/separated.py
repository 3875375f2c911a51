"""Tables as texts (CSV, TSV), read by the standard library: the fields of every column, and what they stand for.

The rules are those of pyarrow's reader, so that a table means the same whether it was read by one or the other.
"""

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from feddyn.errors import InputError

DELIMITERS = ",;\t"
MISSING = frozenset(("", "#N/A", "#N/A N/A", "#NA", "N/A", "NA", "n/a", "NULL", "null"))
NOT_A_NUMBER = frozenset(("-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "NaN", "nan"))
TRUE, FALSE = frozenset(("1", "True", "TRUE", "true")), frozenset(("0", "False", "FALSE", "false"))
WHOLE = re.compile(r"\s*-?\d+\s*", re.ASCII)
NUMBER = re.compile(
    r"\s*[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf(?:inity)?)\s*", re.ASCII | re.IGNORECASE
)
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d(?::?\d\d){0,2}(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)
TIME = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?", re.ASCII)
LARGEST = 2**63


def fields(file: Path) -> dict[str, list[str]]:
    """The fields of every column, in the order of the heading; empty lines are passed over."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            delimiter = max(DELIMITERS, key=re.sub('"[^"]*"', "", stream.readline()).count)
            stream.seek(0)
            heading, *rows = [row for row in csv.reader(stream, delimiter=delimiter, strict=True) if row] or [[]]
    except UnicodeDecodeError as error:
        raise InputError(
            f"the table {file} cannot be read: it is not UTF-8 ({error.reason}): save it as that"
        ) from None
    except (OSError, csv.Error) as error:
        raise InputError(f"the table {file} cannot be read: {error}") from None
    if twice := {name for name in heading if heading.count(name) > 1}:
        raise InputError(f"the table {file} has two columns {min(twice)!r}: rename one of them")
    if uneven := next((at for at, row in enumerate(rows, 1) if len(row) != len(heading)), None):
        raise InputError(
            f"the table {file} cannot be read: row {uneven} has {len(rows[uneven - 1])} fields, the heading "
            f"{len(heading)}"
        )
    return {name: [row[at] for row in rows] for at, name in enumerate(heading)}


def missing(found: Sequence[str]) -> npt.NDArray[np.int64]:
    """The places of fields that stand for no value."""
    none = MISSING | NOT_A_NUMBER
    return np.flatnonzero([field in none for field in found])


def typed(found: Sequence[str]) -> npt.NDArray[Any] | None:
    """Fields, none of which is missing, as whole numbers, yes and no, numbers or texts; None: dates or times."""

    def all_are(kind: Callable[[str], object]) -> bool:
        return all(map(kind, found))

    short = all_are(lambda field: len(field) < 25)  # those of more digits are no whole numbers here
    if short and all_are(WHOLE.fullmatch):
        numbers = [int(field) for field in found]
        if all(-LARGEST <= number < LARGEST for number in numbers):
            return np.array(numbers, dtype=np.int64)
    if all_are((TRUE | FALSE).__contains__):
        return np.array([field in TRUE for field in found])
    if all_are(NUMBER.fullmatch):
        return np.array([float(field) for field in found])
    if all_are(DATE.fullmatch) or all_are(TIME.fullmatch):
        return None
    return np.array(found, dtype=np.str_)
