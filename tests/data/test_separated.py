"""CSV by the standard library means what it means to pyarrow, which has read it in earlier versions."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feddyn.data.columns import Columns
from feddyn.data.separated import fields, missing, typed
from feddyn.errors import InputError

COLUMNS: list[list[str]] = [
    ["1", "-2"], [" 5 ", "6"], ["007", "-08"], ["9223372036854775807", "1"], ["9223372036854775808", "1"],
    ["+5", "6"], ["1e5", "2"], [".5", "1."], ["1.5 ", " 2"], ["0.1e-3", "1E+5"], ["inf", "-Infinity"], ["1e400", "1"],
    ["true", "False"], ["true", "1"], ["TRUE", "yes"], [" true", "false"], ["1.5", "true"],
    ["1_000", "2"], ["- 5", "5"], ["-", "1"], ["1f", "2"], ["\uff11", "2"], [" a ", "b"], ["None", "1"], [" ", "1"],
    ["NA", "1"], ["nan", "1.5"], ["", "b"], ["N/A", "null"],
    ["2024-01-01", "2024-01-02"], ["2024-01-01 10:00", "2024-01-01"], ["2024-01-01T10:00:00Z", "2024-01-01T10:00:01Z"],
    ["12:30", "13:00"], ["12:30:01", "13:00:00"], ["2024-01-01", "12:30"], ["2024-1-1", "2024/01/01"],
]  # fmt: skip


@pytest.mark.parametrize("fields", COLUMNS, ids="|".join)
def test_fields_are_what_pyarrow_takes_them_for(fields: list[str]) -> None:
    csv = pytest.importorskip("pyarrow.csv")
    text = "x,y\n" + "".join(f'"{field}",1\n' for field in fields)
    options = csv.ConvertOptions(strings_can_be_null=True)
    theirs: Any = csv.read_csv(io.BytesIO(text.encode()), convert_options=options)["x"]
    gaps = missing(fields)
    assert gaps.tolist() == [at for at, value in enumerate(theirs.to_pylist()) if value is None]
    if len(gaps):
        return
    ours = typed(fields)
    if ours is None:
        assert str(theirs.type).startswith(("date", "time"))
    else:
        assert str(theirs.type) == {"i": "int64", "f": "double", "b": "bool", "U": "string"}[ours.dtype.kind]
        assert ours.tolist() == theirs.to_pylist()


def test_delimiters_quotes_marks_and_empty_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    for delimiter in ",;\t":
        text = f'\ufeffa{delimiter}b c\r\n1{delimiter}"x{delimiter} ""y"""\r\n\r\n2{delimiter}z\r\n'
        file.write_bytes(text.encode())
        columns = Columns(file)
        assert columns.names == ["a", "b c"]
        assert columns["a"].dtype == np.int64
        assert columns["a"].tolist() == [1, 2]
        assert columns["b c"].tolist() == [f'x{delimiter} "y"', "z"]


def test_a_file_without_anything_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(InputError, match="has no rows"):
        Columns(tmp_path / "a.csv")


def test_a_quote_that_is_never_closed_is_refused(tmp_path: Path) -> None:
    """It would swallow all rows after it."""
    (tmp_path / "my.csv").write_text('x,y\n1,a\n2,"b\n3,c\n4,d\n')
    with pytest.raises(InputError, match="cannot be read"):
        fields(tmp_path / "my.csv")


def test_thousands_of_digits_are_a_number_like_any_other() -> None:
    found = typed(["9" * 5000, "1"])
    assert found is not None
    assert found.dtype == np.float64
