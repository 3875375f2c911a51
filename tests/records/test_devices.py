"""devices.json and classes.json may come from elsewhere: what does not fit is refused when it is read."""

import json
from pathlib import Path
from typing import Any

import pytest

import feddyn
from feddyn.errors import InputError
from feddyn.records.reader import read
from tests.conftest import make_logistic


@pytest.fixture
def folder(tmp_path: Path, logistic: Any) -> Path:
    data, solver = make_logistic([5, 9]), feddyn.SGD(lr=0.1, epochs=1)
    feddyn.simulate(logistic, data, feddyn.FedAvg(), solver, participation=1, rounds=1, workers=1, out=tmp_path / "r")
    return tmp_path / "r"


def test_devices_are_listed_with_their_samples(folder: Path) -> None:
    assert read(folder).on_devices == {"device": ["0", "1"], "samples": [5, 9]}


@pytest.mark.parametrize(
    "content",
    [
        {"device": ["0", "1"], "samples": [5]},
        {"device": ["0", "1"], "samples": [5, -1]},
        {"device": [0, 1], "samples": [5, 9]},
        {"device": ["0", "1"], "loss": [0.1, "x"]},
        {"samples": [5, 9]},
        {"device": 3},
        [],
    ],
)
def test_columns_that_do_not_fit_are_refused(folder: Path, content: Any) -> None:
    (folder / "devices.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="is damaged"):
        read(folder)


def test_active_devices_are_counts(folder: Path) -> None:
    rounds = folder / "rounds.jsonl"
    line = json.loads(rounds.read_text())
    for active in ("all", [0, "1"], [-1]):
        rounds.write_text(json.dumps(line | {"active": active}) + "\n")
        with pytest.raises(InputError, match="active is"):
            read(folder)


def test_every_devices_samples_by_class(folder: Path) -> None:
    labels = make_logistic([5, 9]).y.tolist()
    rows = [[part.count(label) for label in range(3)] for part in (labels[:5], labels[5:])]
    assert read(folder).classes == feddyn.load(folder).classes == rows
    for rest in ([[5]], [[5], [8]], [[5, 0], [9]], 3):
        (folder / "classes.json").write_text(json.dumps({"samples": rest}))
        with pytest.raises(InputError, match="is damaged"):
            read(folder)
    (folder / "classes.json").unlink()  # as in records of an earlier time
    assert not read(folder).classes


def test_the_seconds_until_every_round(folder: Path) -> None:
    record = read(folder)
    assert record.elapsed == [record.seconds]
    (folder / "timings.jsonl").write_text("")
    assert read(folder).elapsed == []
