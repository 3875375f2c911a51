"""`feddyn show`, `feddyn compare` and `feddyn doctor`: what they say of records."""

from pathlib import Path

import pytest

import feddyn
from tests.cli.conftest import Say


def test_a_run_is_described(records: Path, say: Say) -> None:
    code, out, _ = say("show", records / "0.1-0", "--devices")
    run = feddyn.load(records / "0.1-0")
    assert code == 0
    for words in ("FedDyn: alpha 0.1", "synthetic", "finished, 3 of 3 rounds", f"{run.figures[-1]:.4f}"):
        assert words in out
    spread = run.history[-1]["on_devices"]["accuracy"]
    assert f"{spread['worst']:.4f}" in out
    worst_first = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("|")][-6:]
    by_objective = sorted(range(6), key=lambda k: -run.on_devices["objective"][k])
    assert worst_first == [str(k) for k in by_objective]


def test_a_folder_of_runs_is_not_one_run(records: Path, say: Say) -> None:
    code, _, err = say("show", records)
    assert code == 2
    assert "it has 4 runs, 0.01-0, 0.01-1, 0.1-0, 0.1-1: name one" in err
    assert say("show", records / "nowhere")[0] == 2


def test_runs_are_compared(records: Path, say: Say, tmp_path: Path) -> None:
    code, out, _ = say("compare", records, "--metric", "accuracy", "--target", 0.5, "--out", tmp_path / "c.png")
    assert code == 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("|")]
    assert [row[:2] for row in rows if row[0].startswith("0.")] == [["0.01", "0, 1"], ["0.1", "0, 1"]]
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert say("compare", records, "--out", tmp_path / "c.csv")[0] == 0
    assert (tmp_path / "c.csv").read_text().startswith("alpha,seeds,ran,objective at the end")


def test_what_cannot_be_compared_is_one_sentence(records: Path, say: Say, tmp_path: Path) -> None:
    assert "there is no record of an evaluated run" in say("compare", tmp_path)[2]
    assert "did you mean 'accuracy'" in say("compare", records, "--metric", "acuracy")[2]
    assert "end the name in .png" in say("compare", records, "--out", tmp_path / "c.xls")[2]


def test_a_run_shows_itself_in_a_notebook(records: Path) -> None:
    run = feddyn.load(records / "0.1-0")
    page = run._repr_html_()
    assert "data:image/png" in page
    assert "alpha 0.1" in page
    names = [line.get_label() for line in run.plot("loss").axes[0].lines]
    assert names == ["server", "mean of active devices", "mean of all devices"]
    with pytest.raises(feddyn.InputError, match="the run has no 'los'; did you mean 'loss'"):
        run.plot("los")


def test_the_doctor_says_what_is_going_on(records: Path, say: Say) -> None:
    code, out, _ = say("doctor", records / "0.01-0")
    assert code == 0
    assert out.startswith("nothing found in 3 rounds; of how it develops nothing can be said before round 12")
    assert say("doctor", records)[0] == 2
