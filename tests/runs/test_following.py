"""Runs that are followed: progress on standard error, a function that gets every line, and Ctrl-C."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import feddyn
from tests.engine.cases import cases


def arguments(**changes: Any) -> dict[str, Any]:
    return {**cases()["feddyn one by one"], "rounds": 4, "workers": 1, **changes}


def test_progress_is_on_standard_error_and_says_whose_figure_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    run = feddyn.simulate(**arguments(), progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 4
    first = run.history[0]["models"]["all"]["objective"]
    assert lines[0].startswith(f"FedDyn: round 1 of 4, objective (mean of all devices) {first:.4f}, ")
    assert lines[0].endswith(" left")
    assert ", finished, " in lines[-1]


def test_a_script_without_a_terminal_is_not_disturbed(capsys: pytest.CaptureFixture[str]) -> None:
    feddyn.simulate(**arguments())
    feddyn.simulate(**arguments(), progress=False)
    assert capsys.readouterr().err == ""


def test_somebody_at_a_terminal_sees_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    feddyn.simulate(**arguments())
    assert "4/4" in capsys.readouterr().err


def test_progress_and_callbacks_change_no_bit() -> None:
    plain = feddyn.simulate(**arguments())
    seen: list[dict[str, Any]] = []

    def spoil(line: dict[str, Any]) -> None:
        seen.append(dict(line))
        line["models"].clear()  # it is a copy

    followed = feddyn.simulate(**arguments(), progress=True, callback=spoil)
    assert followed.history == plain.history
    assert [line["round"] for line in seen] == [1, 2, 3, 4]
    assert all(torch.equal(followed.models[name], plain.models[name]) for name in plain.models)


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_gives_what_there_is(record: bool, workers: int, tmp_path: Path) -> None:
    def press(line: dict[str, Any]) -> None:
        if line["round"] == 2:
            raise KeyboardInterrupt

    out = tmp_path / "out" if record else None
    case = arguments(workers=workers, out=out)
    with pytest.raises(KeyboardInterrupt, match="interrupted after round 2") as stopped:
        feddyn.simulate(**case, callback=press)
    assert isinstance(stopped.value, feddyn.Interrupted)
    run, whole = stopped.value.run, feddyn.simulate(**arguments())
    assert run.status == "interrupted"
    assert run.history == whole.history[:2]
    short = feddyn.simulate(**arguments(rounds=2))
    assert all(torch.equal(run.models[name], short.models[name]) for name in short.models)
    assert isinstance(run.model("best"), torch.nn.Module)
    if record:
        assert feddyn.simulate(**case, resume=True).history == whole.history


def test_ctrl_c_in_the_midst_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    true, calls = feddyn.FedDyn.aggregate, []

    def press(self: feddyn.FedDyn, *words: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:  # one is a rehearsal
            raise KeyboardInterrupt
        return true(self, *words)

    monkeypatch.setattr(feddyn.FedDyn, "aggregate", press)
    with pytest.raises(feddyn.Interrupted) as stopped:
        feddyn.simulate(**arguments())
    assert len(stopped.value.run.history) == 2
    assert stopped.value.run.status == "interrupted"


def test_what_a_callback_raises_ends_the_run_and_keeps_its_record(tmp_path: Path) -> None:
    def fail(line: dict[str, Any]) -> None:
        if line["round"] == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        feddyn.simulate(**arguments(), callback=fail, out=tmp_path / "out")
    assert feddyn.load(tmp_path / "out").status == "interrupted"
    assert len(feddyn.simulate(**arguments(), out=tmp_path / "out", resume=True).history) == 4


def test_progress_needs_no_notebook() -> None:
    words = "import sys, feddyn.views.progress\nassert not {'torch', 'IPython', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", words], check=True)
