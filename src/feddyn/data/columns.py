"""Tables of one's own as columns: CSV, NumPy's npz, and Parquet, which pyarrow reads."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from feddyn.data import separated
from feddyn.errors import InputError, nearest

if TYPE_CHECKING:
    import pyarrow

Column = npt.NDArray[Any]
"""Numbers (whole, floating-point or yes and no), or texts; of an npz file also with more axes."""
TEXTS = (".csv", ".tsv", ".txt")
SUFFIXES = (*TEXTS, ".parquet", ".pq", ".npz")


class Columns:
    """The columns of a file, checked when they are asked for; rows are counted from 1, without a heading."""

    def __init__(self, given: Path | Mapping[str, Any]):
        self.file = given if isinstance(given, Path) else "what is given"
        self._columns = _read(given) if isinstance(given, Path) else _as_arrays(given)
        if not self._columns or not len(next(iter(self._columns.values()))):
            raise InputError(f"the table {self.file} has no rows")

    @property
    def names(self) -> list[str]:
        """The columns' names, in their order."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> Column:
        """A column without a gap; one that has gaps, or what is neither number nor text, is refused."""
        if name not in self._columns:
            raise InputError(f"the table {self.file} has no column {name!r}; {nearest(name, self.names)}")
        column = self._columns[name]
        if isinstance(column, list):
            array = self._from_fields(name, column)
        else:
            array = column if isinstance(column, np.ndarray) else self._from_arrow(name, column)
        if array.dtype.kind not in "biufU":
            raise InputError(f"{self._where(name)} is of the type {array.dtype}: make numbers or texts of it")
        if len(array) != len(self):
            raise InputError(f"{self._where(name)} has {len(array)} rows, the first column {len(self)}: give one each")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self._gap(name, np.unique(np.argwhere(~np.isfinite(array))[:, 0]), "holds no finite number")
        return array

    def texts(self, name: str) -> Column:
        """A column without a gap as texts, as they stand in the file, whatever they look like."""
        array, fields = self[name], self._columns[name]
        return np.array(fields, dtype=np.str_) if isinstance(fields, list) else array.astype(np.str_)

    def _from_fields(self, name: str, fields: list[str]) -> Column:
        if len(gaps := separated.missing(fields)):
            raise self._gap(name, gaps, "has no value")
        if (array := separated.typed(fields)) is None:
            raise InputError(f"{self._where(name)} has dates or times: make numbers or texts of it")
        return array

    def _from_arrow(self, name: str, column: "pyarrow.ChunkedArray") -> Column:
        import pyarrow as pa

        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if column.null_count:
            raise self._gap(name, np.flatnonzero(column.is_null().to_numpy()), "has no value")
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return np.array(column.to_pylist(), dtype=np.str_)
        if pa.types.is_decimal(kind):
            column = column.cast(pa.float64())
        elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise InputError(f"{self._where(name)} is of the type {kind}: make numbers or texts of it")
        return np.asarray(column.to_numpy())

    def _gap(self, name: str, rows: npt.NDArray[np.int64], what: str) -> InputError:
        """The error for rows in which a value is missing."""
        more = f", like {len(rows) - 1} more" if len(rows) > 1 else ""
        return InputError(
            f"{self._where(name)}, row {rows[0] + 1}, {what}{more}: fill in what is missing, or drop the rows (which "
            "are counted from 1, without the heading)"
        )

    def _where(self, name: str) -> str:
        return f"the column {name!r} of {self.file}"


def sha256(file: Path) -> str:
    """The hash of a file that is there."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"the table {file} cannot be read: {error.strerror}") from None


def _read(file: Path) -> Mapping[str, Any]:
    if file.suffix.lower() not in SUFFIXES:
        raise InputError(f"the table {file} is of no kind that is read here: {', '.join(SUFFIXES)}")
    if not file.is_file():
        raise InputError(f"there is no table {file}")
    suffix = file.suffix.lower()
    if suffix in TEXTS:
        return separated.fields(file)
    return _arrays(file) if suffix == ".npz" else _parquet(file)


def _as_arrays(given: Mapping[str, Any]) -> dict[str, Column]:
    """Columns of one's own: lists, arrays, or of a data frame."""

    def array(column: Any) -> Column:
        return np.asarray(column if isinstance(column, str) else list(column))  # a text is one value, not its letters

    try:
        found = {str(name): array(column) for name, column in given.items()}
    except (TypeError, ValueError) as error:
        raise InputError(f"the columns cannot be read: {error}; give each by its name, a value a row") from None
    if scalar := next((name for name, column in found.items() if column.ndim == 0), None):
        raise InputError(f"the column {scalar!r} is a single value: give one a row")
    return found


def _parquet(file: Path) -> "Mapping[str, pyarrow.ChunkedArray]":
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet is read by pyarrow: pip install 'feddyn[table]'") from None
    try:
        found = parquet.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"the table {file} cannot be read: {str(error).splitlines()[0]}") from None
    names = found.column_names
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"the table {file} has two columns {min(twice)!r}: rename one of them")
    return dict(zip(names, found.columns, strict=True))


def _arrays(file: Path) -> Mapping[str, Column]:
    found = arrays(file)
    if scalar := next((name for name, array in found.items() if array.ndim == 0), None):
        raise InputError(f"the array {scalar!r} of {file} is a single number: give one a row")
    return found


def arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an npz file. None of them may be of Python objects, which could execute anything."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"{file} is damaged, is no npz file or has arrays of objects: save it by np.savez") from None
