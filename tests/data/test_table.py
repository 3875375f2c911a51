"""Tables of one's own: every row goes to its device, encoded as it should be, and what is missing is named."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import feddyn
from feddyn.data.columns import Columns
from feddyn.data.datasets.table import again, table
from feddyn.data.stored import Stored

TEXT = """hospital,age,sex,ill,when
north,40,f,no,2024-01-01
south,50,m,yes,2024-01-02
north,60,m,yes,2024-01-03
south,70,f,no,2024-01-04
south,30,f,no,2024-01-05
"""
AGES = np.array([40, 50, 60, 70, 30])
HOW: dict[str, Any] = {"device": "hospital", "label": "ill", "features": ["age", "sex"]}


def written(folder: Path, text: str = TEXT, name: str = "data.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_columns_become_samples_of_their_devices(tmp_path: Path) -> None:
    """Numbers by mean 50 and deviation sqrt(200), texts as fields in sorted order, classes in sorted order."""
    population = table(file=written(tmp_path), **HOW)
    assert population.names == ("north", "south")
    assert population.sizes == [2, 3]
    x, y = population.samples(1)
    ages = (np.array([50, 70, 30]) - 50) / np.sqrt(200)
    assert np.allclose(x, np.c_[ages, [0, 1, 1], [1, 0, 0]], atol=1e-6)
    assert y.tolist() == [1, 0, 0]
    assert population.origin["classes"] == ["no", "yes"]
    assert population.origin["encoding"] == {
        "age": {"mean": 50.0, "deviation": 14.1421356},
        "sex": {"values": ["f", "m"]},
    }
    unscaled = table(file=tmp_path / "data.csv", **HOW, scale=False)
    assert unscaled.samples(1)[0][:, 0].tolist() == [50, 70, 30]


def _save(kind: str, folder: Path) -> Path:
    file = folder / f"data.{kind}"
    if kind == "npz":
        found = Columns(written(folder))
        arrays: Any = {name: found[name] for name in found.names if name != "when"}
        np.savez(file, **arrays)
    elif kind == "parquet":
        csv, parquet = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")
        read = csv.read_csv(written(folder))
        parquet.write_table(read.set_column(2, "sex", read["sex"].dictionary_encode()), file)
    else:
        written(folder, TEXT.replace(",", ";" if kind == "csv" else "\t"), file.name)
    return file


@pytest.mark.parametrize("kind", ["parquet", "npz", "tsv", "csv"])
def test_all_kinds_of_files_give_the_same(kind: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    plain = table(file=written(tmp_path / "other"), **HOW)
    assert table(file=_save(kind, tmp_path), **HOW).sha256() == plain.sha256()


def test_an_array_with_more_axes_is_taken_as_it_is(tmp_path: Path) -> None:
    images = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
    np.savez(tmp_path / "a.npz", image=images, y=[0, 1, 0, 1], site=["b", "b", "a", "a"], age=[1, 2, 3, 4])
    population = table(file=tmp_path / "a.npz", device="site", label="y", features=["image"])
    assert np.array_equal(population.samples(0)[0], images[2:])
    with pytest.raises(feddyn.InputError, match="arrays are features alone"):
        table(file=tmp_path / "a.npz", device="site", label="y", features=["image", "age"])


def test_the_test_set_is_a_fraction_of_every_device(tmp_path: Path) -> None:
    rows = [f"{'ab'[i % 2]},{i},{i % 3 % 2}" for i in range(80)]
    file = written(tmp_path, "\n".join(["who,x,y", *rows]))

    def drawn(seed: int) -> tuple[Stored, set[float]]:
        found = table(file=file, device="who", label="y", test=0.25, seed=seed, scale=False)
        assert found.test is not None
        return found, set(found.test[0][:, 0].tolist())

    (population, held_out), (_, other) = drawn(0), drawn(1)
    assert population.sizes == [30, 30]
    assert len(held_out) == 20
    assert sum(value % 2 == 0 for value in held_out) == 10
    assert held_out | set(population.x[:, 0].tolist()) == set(range(80))
    assert held_out == drawn(0)[1] != other
    training = [value for value in range(80) if value not in held_out]
    scaled = table(file=file, device="who", label="y", test=0.25, seed=0).origin["encoding"]["x"]
    assert scaled["mean"] == pytest.approx(np.mean(training), rel=1e-8)


def test_a_column_or_a_second_file_is_the_test_set(tmp_path: Path) -> None:
    rows = TEXT.splitlines()
    for words in (("train", "test"), ("0", "1"), ("false", "true")):
        part = [rows[0] + ",part", *(f"{row},{words[i == 1]}" for i, row in enumerate(rows[1:]))]
        population = table(file=written(tmp_path, "\n".join(part)), **HOW, test="part")
        assert population.sizes == [2, 2]
        assert population.test is not None
        assert population.test[1].tolist() == [1]
    train, test = ([rows[0], *some] for some in (rows[1:5], rows[5:]))
    written(tmp_path, "\n".join(test), "held.csv")
    population = table(file=written(tmp_path, "\n".join(train)), **HOW, test="held.csv", scale=False)
    assert population.test is not None
    assert population.test[0].tolist() == [[30, 1, 0]]
    assert len(population.origin["test_sha256"]) == 64


def test_labels_may_be_numbers_or_several(tmp_path: Path) -> None:
    file = written(tmp_path, "who,x,a,b,c\nu,1.5,0,1,2.5\nv,2.5,1,1,3.5\n")
    numbers = table(file=file, device="who", label="c", features=["x"])
    assert numbers.y.tolist() == [[2.5], [3.5]]
    several = table(file=file, device="who", label=["a", "b"], features=["x"])
    assert several.y.tolist() == [[0, 1], [1, 1]]
    counted = table(file=file, device="who", label="a", features=["x"], task="numbers")
    assert counted.y.tolist() == [[0], [1]]
    kinds = table(file=file, device="who", label="a", features=["b", "x"], categories=["x"])
    assert kinds.origin["encoding"]["x"] == {"values": [1.5, 2.5]}


@pytest.mark.parametrize(
    ("text", "how", "sentence"),
    [
        (TEXT.replace("60", ""), {}, "the column 'age' of .*data.csv, row 3, has no value"),
        (TEXT.replace(",f,", ",,"), {}, "the column 'sex' of .*, row 1, has no value, like 2 more: fill in what is"),
        (TEXT.replace("60", "nan"), {}, "the column 'age' of .*, row 3, "),
        (TEXT.replace("70,f", "70,"), {}, "the column 'sex' of .*, row 4, has no value"),
        (TEXT.replace("south,50", ",50"), {}, "the column 'hospital' of .*, row 2, has no value"),
        (TEXT, {"features": None}, "the column 'when' of .* has dates or times"),
        (TEXT, {"label": "il"}, "no column 'il'; did you mean 'ill'"),
        (TEXT, {"features": ["age", "ill"]}, "'ill' is the device, a label or the test"),
        (TEXT, {"test": 1.5}, "between 0 and 1"),
        (TEXT, {"test": 0.01}, "leaves no row for the test"),
        (TEXT, {"test": "part"}, "neither a column of .* nor a file"),
        (TEXT, {"test": "sex", "features": ["age"]}, "row 1, holds 'f': the column that says what is for the test"),
        (TEXT, {"test": "gone.csv"}, "gone.csv cannot be read: No such file"),
        (TEXT, {"categories": ["ages"]}, "categories names 'ages'"),
        (TEXT, {"label": ["ill", "age"], "features": ["sex"]}, "the label 'ill' has texts"),
        (TEXT, {"sha256": "0" * 64}, "has changed since the run was begun"),
        ("hospital,age\nnorth", {}, "cannot be read: row 1 has 1 fields, the heading 2"),
        ("hospital,age,sex,ill\n", {}, "has no rows"),
        (TEXT.replace("hospital,age", "hospital,sex"), {}, "two columns 'sex'"),
        ("hospital,age,sex,ill\na,1,f,0.5\n", {"task": "classes"}, "has fractions"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(text: str, how: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(feddyn.InputError, match=sentence):
        table(file=written(tmp_path, text), **{**HOW, **how})


@pytest.mark.parametrize(
    ("ages", "row"), [(["?", *map(str, range(20, 39))], 1), ([f"{n},5" for n in range(20, 40)], 1)]
)
def test_a_column_of_numbers_with_a_mistake_is_no_column_of_names(ages: list[str], row: int, tmp_path: Path) -> None:
    """One odd cell, or decimal commas: a feature for every age would train without a word."""
    lines = [f'{"ns"[n % 2]},"{age}",{"mf"[n % 2]},{n % 2}' for n, age in enumerate(ages)]
    file = written(tmp_path, "\n".join(["hospital,age,sex,ill", *lines]) + "\n")
    how: dict[str, Any] = {"file": file, "device": "hospital", "label": "ill", "features": ["age", "sex"]}
    with pytest.raises(feddyn.InputError, match=rf"column 'age' of .*, row {row}, holds .* say categories = \['age'\]"):
        table(**how)
    assert table(**how, categories=["age"]).x.shape[1] == len(ages) + 2


def test_classes_may_be_written_as_whole_floats(tmp_path: Path) -> None:
    """As pandas writes a column that once had a gap."""
    file = written(tmp_path, "hospital,age,ill\nn,1,0.0\ns,2,1.0\nn,3,1.0\n")
    how: dict[str, Any] = {"file": file, "device": "hospital", "label": "ill", "features": ["age"]}
    assert table(**how, task="classes").y.tolist() == [0, 1, 1]
    assert table(**how).y.dtype == torch.float32
    file.write_text("hospital,age,ill\nn,1,0.5\ns,2,1.0\nn,3,1.0\n")
    with pytest.raises(feddyn.InputError, match="has fractions"):
        table(**how, task="classes")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(feddyn.InputError, match="of no kind that is read here"):
        Columns(written(tmp_path, TEXT, "data.xlsx"))
    (tmp_path / "latin.csv").write_bytes("hospital\nkrankenhäuser\n".encode("latin-1"))
    with pytest.raises(feddyn.InputError, match=r"latin.csv cannot be read: it is not UTF-8 .*save it as that"):
        Columns(tmp_path / "latin.csv")
    with pytest.raises(feddyn.InputError, match=r"data.npz is damaged"):
        Columns(written(tmp_path, TEXT, "data.npz"))
    np.savez(tmp_path / "object.npz", a=np.array([{}], dtype=object))
    with pytest.raises(feddyn.InputError, match=r"object.npz is damaged"):
        Columns(tmp_path / "object.npz")


def test_parquet_that_is_none_and_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, TEXT, "data.parquet")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(feddyn.InputError, match=r"Parquet is read by pyarrow: pip install 'feddyn\[table\]'"):
            Columns(file)
    pytest.importorskip("pyarrow")
    with pytest.raises(feddyn.InputError, match=r"data.parquet cannot be read"):
        Columns(file)


def test_other_rows_are_encoded_alike(tmp_path: Path) -> None:
    origin = table(file=written(tmp_path), **HOW).origin
    rows = TEXT.splitlines()
    other = again(origin, written(tmp_path, "\n".join([rows[0], rows[3], rows[1]]), "other.csv"))
    assert np.allclose(other.samples(0)[0], [[(60 - 50) / 200**0.5, 0, 1], [(40 - 50) / 200**0.5, 1, 0]], atol=1e-6)
    assert other.y.tolist() == [1, 0]
    with pytest.raises(feddyn.InputError, match="row 1, holds 'x', which is not among the values that are known: f, m"):
        again(origin, written(tmp_path, f"{rows[0]}\nnorth,3,x,no,2024-01-01", "other.csv"))
    alone = again(origin, written(tmp_path, "age,sex,ill\n3,f,no\n", "other.csv"))
    assert alone.names == ("everybody",)


@pytest.mark.parametrize("value", ["176.285714286", "37.2", "98.7", "0", "-1e-30"])
def test_a_constant_column_says_nothing_and_does_no_harm(value: str, tmp_path: Path) -> None:
    """Sums round, so that a deviation of nothing need not be 0."""
    rows = "".join(f"{'ns'[k % 2]},{value},{k},{'yn'[k % 3 == 0]}\n" for k in range(50))
    found = table(file=written(tmp_path, "d,same,other,ill\n" + rows), device="d", label="ill")
    assert found.origin["encoding"]["same"] == {"mean": float(value), "deviation": 1.0}
    assert not found.samples(0)[0][:, 0].any()


def test_large_numbers_are_scaled_by_where_they_differ(tmp_path: Path) -> None:
    rows = "".join(f"{'ns'[k % 2]},{1234567890123456 + k},{'yn'[k % 3 == 0]}\n" for k in range(50))
    x = torch.cat(
        [table(file=written(tmp_path, "d,big,ill\n" + rows), device="d", label="ill").samples(k)[0] for k in (0, 1)]
    )
    assert float(x.double().mean()) == pytest.approx(0, abs=1e-3)
    assert float(x.double().std(correction=0)) == pytest.approx(1, abs=1e-3)
    huge = "".join(f"{'ns'[k % 2]},{k}e300,{'yn'[k % 3 == 0]}\n" for k in range(1, 50))
    with pytest.raises(feddyn.InputError, match=r"the column 'big' of .* holds numbers too large to be scaled, up to"):
        table(file=written(tmp_path, "d,big,ill\n" + huge), device="d", label="ill")


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_the_numbers_of_rows_are_no_feature_unless_they_are_named(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"{name},site,age,ill\n0,n,1,no\n1,s,2,yes\n2,n,3,yes\n3,s,5,no\n")
    with pytest.raises(feddyn.InputError, match="as pandas writes the numbers of rows"):
        table(file=file, device="site", label="ill")
    assert table(file=file, device="site", label="ill", features=["age", name]).total == 4


def test_a_delimiter_at_the_end_of_every_line_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, TEXT.replace("\n", ",\n"))
    with pytest.raises(feddyn.InputError, match=r"column '', .* \(or as a delimiter at the end of"):
        table(file=file, device="hospital", label="ill")


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kept", [[], [2, 4]])
def test_a_device_needs_rows_to_train_on(kept: list[int], scale: bool, tmp_path: Path) -> None:
    """Devices may be numbers, 0 among them."""
    rows = "".join(f"{k % 2},{k},{'yn'[k % 3 == 0]},{'train' if k + 1 in kept else 'test'}\n" for k in range(8))
    with pytest.raises(feddyn.InputError, match=r"all rows of device 0 are for the test: it needs at least one"):
        table(file=written(tmp_path, "d,x,ill,part\n" + rows), device="d", label="ill", test="part", scale=scale)


@pytest.mark.parametrize("day", ["0{}.01.2023", "01/0{}/2023", "2023/1/{}", "0{}.01.23", "2023-01-0{} 10:00:00 AM"])
def test_dates_of_any_form_are_refused(day: str, tmp_path: Path) -> None:
    rows = "".join(f"{'ns'[k % 2]},{day.format(k + 1)},{'yn'[k % 3 == 0]}\n" for k in range(8))
    file = written(tmp_path, "site,seen,ill\n" + rows)
    with pytest.raises(feddyn.InputError, match=r"the column 'seen' of .* has dates"):
        table(file=file, device="site", label="ill")
    assert table(file=file, device="site", label="ill", categories=["seen"]).samples(0)[0].shape[1] == 8


def test_a_second_file_may_look_like_numbers_where_the_first_has_texts(tmp_path: Path) -> None:
    """Wards A1, 12 and 013 of which another file has the last two: they are the same wards."""
    heading = "site,ward,ill\n"
    first = written(tmp_path, heading + "n,A1,0\ns,12,unknown\nn,013,1\ns,A1,0\n")
    second = written(tmp_path, heading + "n,12,0\ns,013,1\n", "new.csv")
    found = table(file=first, device="site", label="ill", test="new.csv")
    assert found.test is not None
    assert found.origin["encoding"]["ward"] == {"values": ["013", "12", "A1"]}
    assert found.test[0].tolist() == [[0, 1, 0], [1, 0, 0]]
    assert [found.origin["classes"][k] for k in found.test[1].tolist()] == ["0", "1"]
    alone = table(file=first, device="site", label="ill")
    assert again(alone.origin, second).samples(0)[0].tolist() == [[0, 1, 0]]


def test_a_heading_may_have_commas_in_quotes(tmp_path: Path) -> None:
    text = 'site;"pressure, mmHg, left, right";ill\nn;1;no\ns;2;yes\n'
    assert Columns(written(tmp_path, text)).names == ["site", "pressure, mmHg, left, right", "ill"]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([np.arange(6) < 3, np.arange(6) >= 3], "the rows of device 0 are of the type bool: .* numpy.flatnonzero"),
        ([[0, 1], [0.5]], "the rows of device 1 are of the type float64: give their numbers, from 0"),
        ("iid", "device 0 has no samples"),
        ([[0], []], "device 1 has no samples"),
    ],
)
def test_parts_are_numbers_of_rows(parts: Any, words: str) -> None:
    with pytest.raises(feddyn.InputError, match=words):
        feddyn.Population.from_parts(np.zeros((6, 2)), np.arange(6) % 2, parts)
