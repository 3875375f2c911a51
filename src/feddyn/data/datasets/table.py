"""A table of one's own as a population: a column says whose row it is, one is the label, the others are features.

How its columns became inputs is kept as the `encoding`, so that other rows can be encoded alike.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from feddyn.checks import require_whole
from feddyn.data.columns import SUFFIXES, Column, Columns, sha256
from feddyn.data.datasets.encoding import Rows, encoded, encoding_of, places, values_of
from feddyn.data.stored import Stored, from_parts
from feddyn.errors import InputError

INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""The names under which pandas writes the numbers of rows."""


def table(
    *,
    file: Path,
    device: str,
    label: str | Sequence[str],
    features: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    task: Literal["classes", "numbers"] | None = None,
    test: float | str | None = None,
    scale: bool = True,
    seed: int = 0,
    encoding: dict[str, Any] | None = None,
    classes: Sequence[Any] | None = None,
    sha256: str | None = None,
    test_sha256: str | None = None,
) -> Stored:
    """The rows of a CSV, Parquet or npz file.

    device, label: the columns that say whose a row is, and what is to be predicted; several labels are each 0 or 1, or
    numbers. features: the columns that it is predicted from (default: all others). categories: features that are
    numbers but stand for kinds. task: whether the label is a class or a number (default: texts and whole numbers are
    classes). test: the fraction of every device's rows that is kept for the test, drawn by `seed`; or the name of a
    column that says it of every row (true or false, 1 or 0, "test" or "train"); or a second file, beside the first.
    scale: whether numbers are scaled. encoding, classes, sha256 and test_sha256 are what a record knows of the data.
    """
    require_whole("table", "seed", seed, 0)
    pinned = {"sha256": _unchanged(file, sha256)}
    columns = Columns(file)
    labels = [label] if isinstance(label, str) else list(label)
    second = _second(file, test)
    column = test if isinstance(test, str) and second is None else None
    if second is not None:
        pinned["test_sha256"] = _unchanged(second, test_sha256)
    others = [name for name in columns.names if name not in (device, column, *labels)]
    if features is None and (index := next(filter(INDEX.fullmatch, others), None)) is not None:
        where = "" if index else " (or as a delimiter at the end of every line leaves it)"
        raise InputError(
            f"the table {file} has the column {index!r}, as pandas writes the numbers of rows{where}, which may tell "
            "the label: write it without (index=False), or name the features"
        )
    chosen = others if features is None else list(features)
    for name in (*labels, device, *([column] if column else [])):
        if name in chosen:
            raise InputError(f"table: {name!r} is the device, a label or the test, and cannot be a feature as well")
    if not chosen or not labels:
        raise InputError(f"table: {file} has no column left for {'features' if labels else 'the label'}")
    names, owner = np.unique(_one_each(columns, device, "device"), return_inverse=True)
    held_out = _held_out(columns, column, test, owner, seed)
    parts = [np.flatnonzero((owner == k) & ~held_out) for k in range(len(names))]
    if empty := [name for name, part in zip(names, parts, strict=True) if not len(part)]:
        raise InputError(f"table: all rows of device {empty[0]!s} are for the test: it needs at least one to train on")
    tables = [columns] if second is None else [columns, Columns(second)]
    found = encoding or encoding_of(tables, ~held_out, chosen, categories, scale)
    kinds = classes or _classes(tables, labels, task)
    x, y = encoded(columns, chosen, found), _targets(columns, labels, task, kinds)
    tested = (x[held_out], y[held_out]) if held_out.any() else None
    if second is not None:
        tested = encoded(tables[1], chosen, found), _targets(tables[1], labels, task, kinds)
    origin = {
        "source": "table",
        "file": str(file),
        "device": device,
        "label": label if isinstance(label, str) else labels,
        "features": chosen,
        **({"categories": list(categories)} if categories else {}),
        **({"task": task} if task else {}),
        **({} if test is None else {"test": test if second is None else str(second)}),
        **({} if scale else {"scale": False}),
        **({"seed": seed} if isinstance(test, int | float) else {}),
        **({"encoding": found} if found else {}),
        **({"classes": kinds} if kinds else {}),
        **pinned,
    }
    return replace(from_parts(x, y, parts, tested, origin=origin), names=tuple(map(str, names)))


def features(origin: Mapping[str, Any], given: object) -> npt.NDArray[Any]:
    """The features in another file, or given as columns by name, without any other columns that the table has, encoded
    as those of a recorded population."""
    wanted: list[str] = origin["features"]
    if not isinstance(given, Path | Mapping) and hasattr(given, "columns"):  # a data frame, whosever it is
        given = {name: given[name] for name in given.columns}  # type: ignore[index]
    if isinstance(given, Mapping) and set(wanted) <= given.keys():
        given = {name: given[name] for name in wanted}  # whatever the others are
    if not isinstance(given, Path | Mapping):
        raise InputError(
            "the run was made on a table, whose columns were encoded: give the path of another one, or its columns by "
            f"name, as in {{{wanted[0]!r}: [...]}}"
        )
    return encoded(Columns(given), wanted, origin.get("encoding", {}))


def again(origin: Mapping[str, Any], file: Path) -> Stored:
    """The rows of another file, encoded as those of a recorded population; where there is no column that says whose
    they are, one device has them all."""
    columns = Columns(file)
    labels = [origin["label"]] if isinstance(origin["label"], str) else list(origin["label"])
    if missing := [name for name in labels if name not in columns.names]:
        raise InputError(
            f"the table {file} has no column {missing[0]!r}, the label, which figures need: add it; predictions do "
            f"without, feddyn.load(DIR).predict({str(file)!r})"
        )
    x = encoded(columns, origin["features"], origin.get("encoding", {}))
    y = _targets(columns, labels, origin.get("task"), origin.get("classes", ()))
    if origin["device"] not in columns.names:
        return replace(from_parts(x, y, [np.arange(len(columns))]), names=("everybody",))
    names, owner = np.unique(columns[origin["device"]], return_inverse=True)
    parts = [np.flatnonzero(owner == k) for k in range(len(names))]
    return replace(from_parts(x, y, parts), names=tuple(map(str, names)))


def _second(file: Path, test: object) -> Path | None:
    """The second file, where `test` names one: as it says, or beside the first."""
    if not isinstance(test, str) or Path(test).suffix.lower() not in SUFFIXES:
        return None
    named = file.parent / Path(test).expanduser()
    return named if named.is_file() else file.parent / named.name


def _classes(tables: Sequence[Columns], labels: Sequence[str], task: str | None) -> list[Any]:
    """The classes of a single label; none where it is a number."""
    kind = tables[0][labels[0]].dtype.kind
    if len(labels) > 1 or task == "numbers" or (task is None and kind == "f"):
        return []
    _one_each(tables[0], labels[0], "class")
    if kind == "f" and not all(np.equal(columns[labels[0]] % 1, 0).all() for columns in tables):
        raise InputError(f"table: the label {labels[0]!r} has fractions: they are numbers, not classes")
    return values_of(tables, labels[0])


def _one_each(columns: Columns, name: str, what: str) -> Column:
    """A column that has a single value in every row."""
    if (column := columns[name]).ndim > 1:
        raise InputError(f"the array {name!r} of {columns.file} has the shape {column.shape}: give one {what} a row")
    return column


def _targets(columns: Columns, labels: Sequence[str], task: str | None, classes: Sequence[Any]) -> npt.NDArray[Any]:
    """Classes by their places, or numbers with a field for each label."""
    if classes:
        return places(columns, labels[0], classes)
    parts: list[Column] = []
    for name in labels:
        column = columns[name]
        if column.dtype.kind == "U":
            raise InputError(f"table: the label {name!r} has texts: one label may be a class, several are 0 and 1")
        if len(labels) > 1 and task == "classes" and not np.isin(column, (0, 1)).all():
            raise InputError(f"table: the label {name!r} is not 0 or 1 in every row: with several labels each is")
        parts.append(column.reshape(len(column), -1))
    return np.concatenate(parts, axis=1).astype(np.float32)


def _held_out(columns: Columns, column: str | None, test: object, owner: npt.NDArray[Any], seed: int) -> Rows:
    """Which rows are for the test."""
    if column is not None:
        if column not in columns.names:
            kinds = ", ".join(SUFFIXES)
            raise InputError(f"table: test = {column!r} is neither a column of {columns.file} nor a file ({kinds})")
        found = columns[column]
        yes, no = ("test", "train") if found.dtype.kind == "U" else (1, 0)
        if not np.isin(found, (yes, no)).all():
            row = int(np.flatnonzero(~np.isin(found, (yes, no)))[0])
            raise InputError(
                f"the column {column!r} of {columns.file}, row {row + 1}, holds {found[row].item()!r}: the column that "
                'says what is for the test holds true and false, 1 and 0, or "test" and "train"'
            )
        held_out: Rows = found == yes
        return held_out
    held_out = np.zeros(len(columns), dtype=np.bool_)
    if isinstance(test, int | float):
        if isinstance(test, bool) or not 0 < test < 1:
            raise InputError(f"table: test must be a fraction between 0 and 1, a column or a file, not {test!r}")
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        for k in range(int(owner.max()) + 1):
            rows = rng.permutation(np.flatnonzero(owner == k))
            held_out[rows[: min(round(test * len(rows)), len(rows) - 1)]] = True
        if not held_out.any():
            raise InputError(f"table: test = {test} leaves no row for the test: the devices have too few")
    return held_out


def _unchanged(file: Path, recorded: str | None) -> str:
    """The hash of a file, which must be the one that a record has."""
    found = sha256(file)
    if recorded is not None and found != recorded:
        raise InputError(
            f"{file} has changed since the run was begun (its SHA-256 is {found[:16]}..., in the setting it is "
            f"{recorded[:16]}...): restore it, or start a run of its own"
        )
    return found
