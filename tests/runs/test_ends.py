"""When runs end: by patience, later than they did at first, and with the best of their models kept."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import feddyn
from feddyn.metrics import Figures
from feddyn.records.layout import difference, past_key
from feddyn.runs.watch import Watch
from tests.engine.cases import cases
from tests.runs.test_resume import contents

KINDS = ("feddyn one by one", "scaffold on disk", "no mean of all")


def arguments(rounds: int = 12, name: str = KINDS[0], **changes: Any) -> dict[str, Any]:
    return {**cases()[name], "rounds": rounds, **changes}


WAVERING: dict[str, Any] = {
    "participation": 1,
    "algorithm": feddyn.Scaffold(),
    "solver": feddyn.SGD(0.3, epochs=5, batch_size=8),
}
"""The loss of the server's model falls until round 6, rises, and is lower again in round 11."""


def losses(run: feddyn.Run, model: str = "all", metric: str = "loss") -> list[float]:
    return [line["models"][model][metric] for line in run.history]


def figures(value: float) -> dict[str, Figures]:
    return {"all": {"accuracy": value}}


def watched(
    values: Sequence[float | None], patience: feddyn.Patience | None, better: Any = "higher"
) -> tuple[int, int]:
    """The round that is the best one, and the one in which the run gives up; 0: none."""
    watch, gave_up = Watch("all", "accuracy", better, figures(0.5), patience), 0
    for number, value in enumerate(values, 1):
        line = {"round": number} | ({} if value is None else {"models": figures(value)})
        watch.take(line)
        gave_up = gave_up or (number if watch.gives_up else 0)
    return watch.best["round"] if watch.best else 0, gave_up


def test_patience_by_hand() -> None:
    """The initial model has 0.5. Equal figures are no better, and the first of them is the best."""
    rising = [0.6, 0.7, 0.7, 0.65, 0.7, 0.9]
    assert watched(rising, None) == (6, 0)
    assert watched(rising, feddyn.Patience(3)) == (6, 5)
    assert watched(rising, feddyn.Patience(4)) == (6, 0)
    assert watched([0.4, 0.5, 0.45], feddyn.Patience(3)) == (2, 3)
    assert watched([0.61, 0.65, 0.69, 0.7], feddyn.Patience(2, gain=0.1)) == (4, 3)
    assert watched([0.61, 0.65, 0.69, 0.75], feddyn.Patience(3, gain=0.1)) == (4, 0)
    assert watched([0.4, 0.3, 0.35, 0.3], feddyn.Patience(2), "lower") == (2, 4)
    assert watched([0.6, None, None, 0.6, None], feddyn.Patience(2)) == (1, 4)
    assert watched([], feddyn.Patience(1)) == (0, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_gives_up_and_keeps_its_best_model(workers: int, tmp_path: Path) -> None:
    patience = feddyn.Patience(3, metric="loss", model="server")
    whole = feddyn.simulate(**arguments(12, **WAVERING), workers=1)
    values = losses(whole, "server")
    expected = next(t for t in range(1, 13) if t - 1 - min(range(t), key=lambda i: values[i]) >= 3)
    assert min(values[expected:]) < min(values[:expected])  # it would have gone on
    out = tmp_path / "out"
    run = feddyn.simulate(**arguments(12, **WAVERING), patience=patience, workers=workers, out=out)
    assert run.status == "no longer improving"
    assert run.history == whole.history[:expected]
    best = expected - 3
    assert run.summary["best"] == {"round": best, "model": "server", "loss": values[best - 1]}
    short = feddyn.simulate(**arguments(best, **WAVERING), workers=1)
    assert torch.equal(run.models["best"], short.models["server"])
    assert not torch.equal(run.models["best"], run.models["server"])
    found = feddyn.load(out, model=cases()[KINDS[0]]["model"])
    assert torch.equal(found.models["best"], run.models["best"])
    assert found.status == "no longer improving"
    again = feddyn.simulate(**arguments(12, **WAVERING), patience=patience, out=out, resume=True)
    assert (again.status, again.history) == (run.status, run.history)
    assert torch.equal(again.models["best"], run.models["best"])
    vector = torch.nn.utils.parameters_to_vector(run.model("best").parameters())
    assert torch.equal(vector, run.models["best"])


@pytest.mark.parametrize("stop", [1, 6, 8])
def test_after_a_resume_the_same_is_decided(stop: int, tmp_path: Path) -> None:
    case = arguments(12, patience=feddyn.Patience(3, metric="loss", model="server"), **WAVERING)
    assert len(feddyn.simulate(**case, workers=1, out=tmp_path / "whole").history) == 9
    simulation = feddyn.Simulation(feddyn.Plan(**case), tmp_path / "parts", workers=2)
    for line in simulation:
        if line["round"] == stop:
            break
    feddyn.simulate(**case, workers=1, out=tmp_path / "parts", resume=True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


@pytest.mark.parametrize("name", KINDS)
def test_a_run_that_is_extended_is_as_one_that_was_longer_from_the_start(name: str, tmp_path: Path) -> None:
    feddyn.simulate(**arguments(12, name), workers=1, out=tmp_path / "whole")
    for rounds in (3, 7, 12):
        run = feddyn.simulate(**arguments(rounds, name), workers=1, out=tmp_path / "parts", resume=True)
        assert len(run.history) == rounds
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_an_extended_run_that_is_interrupted_goes_on(tmp_path: Path) -> None:
    feddyn.simulate(**arguments(12), workers=1, out=tmp_path / "whole")
    feddyn.simulate(**arguments(3), workers=1, out=tmp_path / "parts")
    simulation = feddyn.Simulation(feddyn.Plan(**arguments(12)), tmp_path / "parts", workers=1, resume=True)
    for line in simulation:
        if line["round"] == 5:
            break
    assert feddyn.load(tmp_path / "parts").status == "interrupted"
    feddyn.simulate(**arguments(12), workers=1, out=tmp_path / "parts", resume=True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_crash_while_a_run_is_extended_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the summary is gone or the setting is written already, the run goes on."""
    feddyn.simulate(**arguments(12), workers=1, out=tmp_path / "whole")

    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    for place in ("feddyn.records.writer.Record._set", "feddyn.runs.simulation.Simulation._lines"):
        out = tmp_path / place
        feddyn.simulate(**arguments(3), workers=1, out=out)
        with monkeypatch.context() as patch:
            patch.setattr(place, crash)
            with pytest.raises(Crash):
                feddyn.simulate(**arguments(12), workers=1, out=out, resume=True)
        feddyn.simulate(**arguments(12), workers=1, out=out, resume=True)
        assert contents(out) == contents(tmp_path / "whole")


def test_a_target_or_a_patience_may_be_moved(tmp_path: Path) -> None:
    """A run that reached its target, or gave up, goes on where another one is asked for."""
    whole = feddyn.simulate(**arguments(12), workers=1)
    values = losses(whole)
    aim = [feddyn.Target("loss", value) for value in (max(values), min(values))]
    first = feddyn.simulate(**arguments(12, target=aim[0]), workers=1, out=tmp_path / "a")
    assert (first.status, len(first.history)) == ("target reached", 1)
    more = feddyn.simulate(**arguments(12, target=aim[1]), workers=1, out=tmp_path / "a", resume=True)
    assert (more.status, len(more.history)) == ("target reached", values.index(min(values)) + 1)
    back = feddyn.simulate(**arguments(12, target=aim[0]), workers=1, out=tmp_path / "a", resume=True)
    assert (back.status, len(back.history)) == ("target reached", len(more.history))
    assert back.summary["reached"]["round"] == 1
    tired = feddyn.simulate(**arguments(12, patience=feddyn.Patience(1, gain=10.0)), workers=1, out=tmp_path / "b")
    assert (tired.status, len(tired.history)) == ("no longer improving", 1)
    awake = feddyn.simulate(**arguments(12), workers=1, out=tmp_path / "b", resume=True)
    assert (awake.status, awake.history) == ("finished", whole.history)


def test_what_defines_the_past_must_agree_and_is_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    feddyn.simulate(**arguments(3), workers=1, out=out)
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    for changes, sentence in (
        ({"solver": feddyn.SGD(0.07, epochs=2, batch_size=8)}, r"solver\.lr was 0.1 when it was begun, and is 0.07"),
        ({"seed": 7}, "seed was 1 when it was begun, and is 7 now"),
        ({"participation": 2}, "participation was 5 when it was begun, and is 2 now"),
        ({"target": feddyn.Target("loss", 0.1)}, r"target\.metric was not there when it was begun, and is 'loss' now"),
        ({"rounds": 2}, "has 3 rounds already: rounds cannot be 2"),
    ):
        with pytest.raises(feddyn.InputError, match=sentence):
            feddyn.simulate(**{**arguments(9), **changes}, out=out, resume=True)
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before


def test_a_schedule_may_grow(tmp_path: Path) -> None:
    rounds = [[0, 1], [2, 3], [4, 5], [6, 7]]
    case = {key: value for key, value in arguments().items() if key not in ("rounds", "participation")}
    feddyn.simulate(**case, rounds=2, participation=rounds[:2], workers=1, out=tmp_path / "out")
    with pytest.raises(feddyn.InputError, match="participation was"):
        feddyn.simulate(**case, rounds=4, participation=rounds[::-1], out=tmp_path / "out", resume=True)
    run = feddyn.simulate(**case, rounds=4, participation=rounds, out=tmp_path / "out", resume=True)
    assert [line["active"] for line in run.history] == rounds
    assert run.history == feddyn.simulate(**case, rounds=4, participation=rounds, workers=1).history


@pytest.mark.parametrize("lost", ["all", "damaged"])
def test_a_run_without_a_checkpoint_is_not_extended_and_loses_nothing(lost: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    every = feddyn.CheckpointEvery(rounds=1, keep=0 if lost == "all" else 100_000_000)
    feddyn.simulate(**arguments(3), workers=1, out=out, checkpoint=every)
    assert (out / "checkpoint").exists() == (lost == "damaged")
    if lost == "damaged":
        (out / "checkpoint" / "000003.server.safetensors").write_bytes(b"x")
    before = {file: file.read_bytes() for file in out.iterdir() if file.is_file() and file.name != "timings.jsonl"}
    with pytest.raises(feddyn.InputError, match="no whole checkpoint to which rounds could be added"):
        feddyn.simulate(**arguments(9), workers=1, out=out, resume=True)
    assert {file: file.read_bytes() for file in before} == before
    assert feddyn.simulate(**arguments(3), workers=1, out=out, resume=True).status == "finished"


def test_a_full_disk_costs_the_last_checkpoint_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("feddyn.runs.checkpoint.write_whole", full)
    run = feddyn.simulate(**arguments(3), workers=1, out=tmp_path / "out")
    assert run.status == "finished"
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["status"] == "finished"
    assert not (tmp_path / "out" / "checkpoint").exists()


def test_figures_of_devices_survive_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the last checkpoint and the end."""
    case = arguments(3, evaluation=feddyn.Evaluation(devices=True))
    feddyn.simulate(**case, workers=1, out=tmp_path / "whole")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("feddyn.records.writer.Record.close", crash)
        with pytest.raises(KeyboardInterrupt):
            feddyn.simulate(**case, workers=1, out=tmp_path / "parts")
    feddyn.simulate(**case, workers=1, out=tmp_path / "parts", resume=True)
    assert (tmp_path / "parts/devices.json").read_bytes() == (tmp_path / "whole/devices.json").read_bytes()


def test_the_past_of_a_setting() -> None:
    one = {"rounds": 3, "solver": {"lr": 0.1}, "patience": {"rounds": 2, "gain": 0.0}, "stack": 4}
    other = {"rounds": 9, "solver": {"lr": 0.1}, "cohort": 4}
    assert past_key(one) == past_key(other)
    assert difference(one, other, 3) == ""
    assert past_key(one) != past_key({**other, "solver": {"lr": 0.2}})
    assert difference(one, {**other, "patience": {"rounds": 1, "gain": 0.0, "metric": "loss"}}, 3).startswith(
        "patience.m"
    )


@pytest.mark.parametrize(
    ("patience", "sentence"),
    [
        (lambda: feddyn.Patience(0), "patience: rounds must be a whole number of at least 1"),
        (lambda: feddyn.Patience(1, gain=-1.0), "patience: gain must be a finite number of at least 0"),
        (
            lambda: feddyn.Patience(1, metric="acuracy"),
            "patience: metric 'acuracy' is not known; did you mean",
        ),
        (lambda: feddyn.Patience(1, model="al"), "patience: model 'al' is not known"),  # type: ignore[arg-type]
        (lambda: "often", "patience must be a Patience, not a str"),
    ],
)
def test_bad_patience_is_refused(patience: Any, sentence: str) -> None:
    with pytest.raises(feddyn.InputError, match=sentence):
        feddyn.simulate(**arguments(2, patience=patience()))
