"""How the columns of a table become a model's inputs, and how those of another table become the same ones.

A column of numbers becomes (x - mean) / deviation, by the training rows' mean and standard deviation; one of texts a
field of 0 and 1 for each of its values.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feddyn.data.columns import Columns
from feddyn.errors import InputError

Encoding: TypeAlias = dict[str, dict[str, Any]]
"""By column: {mean, deviation} of numbers, or {values} of texts."""
Rows: TypeAlias = npt.NDArray[np.bool_]
NUMBERS, LEAST_NUMBERS = 0.1, 5
"""A column of texts of which at most this part is no number, and which has so many different values, is one of numbers
with a mistake in it."""
MOST_VALUES = 1000
DIGITS = 9
"""Of means and deviations, so that they are the same on every processor."""
CLOSE = 1e-6
"""How far a mean of so few digits may be off, in deviations; where it is further, it keeps all of them."""
DAY = re.compile(
    r"(?:\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2\d{4}|\d\d([./-])\d\d\3\d\d)(?:[ T].*)?", re.ASCII
)


def encoded(columns: Columns, features: Sequence[str], encoding: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The features of every row: a row of numbers or, of an npz file, an array with more axes as it is."""
    if len(features) == 1 and features[0] not in encoding:
        return columns[features[0]]
    parts = []
    for name in features:
        column, how = columns[name], encoding.get(name)
        if column.ndim > 1 or how is None:
            raise InputError(
                f"table: the feature {name!r} has {column.ndim} axes, or no encoding: arrays are features alone; for a "
                "model of several inputs use Population.from_arrays"
            )
        if "values" in how:
            parts.append(places(columns, name, how["values"])[:, None] == np.arange(len(how["values"])))
        elif column.dtype.kind == "U":
            raise InputError(f"the column {name!r} of {columns.file} has texts, where the record has numbers")
        else:
            parts.append(((column.astype(np.float64) - how["mean"]) / how["deviation"])[:, None])
    return np.concatenate(parts, axis=1).astype(np.float32)


def encoding_of(
    tables: Sequence[Columns], training: Rows, features: Sequence[str], categories: Sequence[str], scale: bool
) -> Encoding:
    """How each feature is encoded: by the values in all rows, and the scale of the training rows."""
    if unknown := [name for name in categories if name not in features]:
        raise InputError(f"table: categories names {unknown[0]!r}, which is no feature")
    found: Encoding = {}
    if len(features) == 1 and tables[0][features[0]].ndim > 1:
        return found
    for name in features:
        column = tables[0][name]
        if column.dtype.kind == "U" and name not in categories:
            _require_texts(tables[0], name)
        if column.dtype.kind == "U" or name in categories:
            found[name] = {"values": values_of(tables, name)}
        elif column.dtype.kind == "b" or not scale:
            found[name] = {"mean": 0.0, "deviation": 1.0}
        else:
            found[name] = _scale(column[training].astype(np.float64), f"the column {name!r} of {tables[0].file}")
    return found


def _scale(rows: npt.NDArray[np.float64], what: str) -> dict[str, float]:
    """The mean and the deviation of some rows, of as few digits as tell the rows apart: the same on every processor.
    They are taken from the least row on, so that what is equal in all rows leaves no rounding behind."""
    least = float(rows.min())
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = least + float((rows - least).mean()), float((rows - least).std())
    if not np.isfinite([mean, deviation]).all():
        raise InputError(
            f"{what} holds numbers too large to be scaled, up to {rows.max():g}: leave it out, or scale it"
        )
    short = float(f"{mean:.{DIGITS}g}")
    close = abs(short - mean) <= CLOSE * deviation
    return {"mean": short if close else mean, "deviation": float(f"{deviation:.{DIGITS}g}") or 1.0}


def _require_texts(columns: Columns, name: str) -> None:
    """Refuse a column of numbers that one odd cell, or decimal commas, would make a feature for every value of."""
    values, first = np.unique(columns[name], return_index=True)
    if all(DAY.fullmatch(value) for value in values.tolist()):
        raise InputError(
            f"the column {name!r} of {columns.file} has dates, such as {values[0].item()!r}: make numbers of them, or, "
            f"if each is a name of its own, say categories = [{name!r}]"
        )
    odd = [place for value, place in zip(values.tolist(), first.tolist(), strict=True) if not _is_number(value)]
    commas = sum(_is_number(value.replace(",", ".", 1)) for value in values.tolist() if "," in value)
    if min(len(odd), len(odd) - commas) > NUMBERS * len(values) or len(values) < LEAST_NUMBERS:
        return
    row = min(odd)
    raise InputError(
        f"the column {name!r} of {columns.file}, row {row + 1}, holds {columns[name][row].item()!r}, where nearly all "
        f"others are numbers: write it as a number (with a point), drop the row, or, if these are names and not "
        f"numbers, say categories = [{name!r}]"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def values_of(tables: Sequence[Columns], name: str) -> list[Any]:
    """The different values of a column, in order."""
    found = [columns[name] for columns in tables]
    if any(column.dtype.kind == "U" for column in found):  # in one file all may look like numbers
        found = [columns.texts(name) for columns in tables]
    values: list[Any] = np.unique(np.concatenate(found)).tolist()
    if len(values) > MOST_VALUES:
        raise InputError(
            f"the column {name!r} of {tables[0].file} has {len(values)} different values: leave it out, or make "
            "numbers of it"
        )
    return values


def places(columns: Columns, name: str, values: Sequence[Any]) -> npt.NDArray[np.int64]:
    """The numbers of a column's values among those that are known."""
    known = {value: place for place, value in enumerate(values)}
    column = columns.texts(name) if all(isinstance(value, str) for value in values) else columns[name]
    found = [known.get(value, -1) for value in column.tolist()]
    if -1 in found:
        row = found.index(-1)
        raise InputError(
            f"the column {name!r} of {columns.file}, row {row + 1}, holds {column[row].item()!r}, which is not "
            f"among the values that are known: {', '.join(map(str, values[:20]))}; correct it, or drop the row"
        )
    return np.array(found)
