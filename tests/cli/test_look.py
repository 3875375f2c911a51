"""`feddyn show`, `feddyn compare` and `feddyn doctor`: what they say of records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import feddyn
from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from tests.cli.test_run import call
from tests.settings.test_loading import SETTING

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two alphas by two seeds, and the devices' own figures."""
    home = tmp_path_factory.mktemp("records")
    for alpha in (0.1, 0.01):
        for seed in (0, 1):
            changed: dict[str, Any] = {"algorithm": {"name": "feddyn", "alpha": alpha}, "seed": seed}
            ((_, plan),) = plans({**SETTING, **changed, "evaluation": {"devices": True}})
            for _ in Simulation(plan, home / f"{alpha}-{seed}", workers=1):
                pass
    return home


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """The exit code of `feddyn WORDS`, and what it prints."""

    def run(*words: object) -> tuple[int, str, str]:
        code = call(*map(str, words), monkeypatch=monkeypatch)
        out, err = capsys.readouterr()
        return code, out, err

    return run


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
    assert (tmp_path / "c.csv").read_text().startswith("alpha,seeds,status,ran,objective at the end")


def test_what_cannot_be_compared_is_one_sentence(records: Path, say: Say, tmp_path: Path) -> None:
    assert "there is no record of an evaluated run" in say("compare", tmp_path)[2]
    assert "did you mean 'all accuracy'" in say("compare", records, "--metric", "acuracy")[2]
    assert "end the name in .png" in say("compare", records, "--out", tmp_path / "c.xls")[2]


def test_a_run_shows_itself_in_a_notebook(records: Path) -> None:
    run = feddyn.load(records / "0.1-0")
    page = run._repr_html_()
    assert "data:image/png" in page
    assert "alpha 0.1" in page
    assert [line.get_label() for line in run.plot("loss").axes[0].lines] == ["server", "active", "all"]
    with pytest.raises(feddyn.InputError, match="the run has no 'los'; did you mean 'loss'"):
        run.plot("los")


def test_the_doctor_says_what_is_going_on(records: Path, say: Say) -> None:
    code, out, _ = say("doctor", records / "0.01-0")
    assert code == 0
    assert out.startswith("nothing found in 3 rounds; of how it develops nothing can be said before round 12")
    assert say("doctor", records)[0] == 2
