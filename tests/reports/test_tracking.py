"""A live view in TensorBoard, which goes on with a run; MLflow, where it is installed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from feddyn.errors import FeddynError
from feddyn.reports.tracking import TRACKERS, require


def line(number: int) -> dict[str, Any]:
    counts = {"round": number, "transmitted": number, "bytes_up": 8, "bytes_down": 8, "gradients": 5}
    models = {"all": {"loss": 1 / number, "accuracy": 0.5}}
    return counts | {"models": models, "norms": {"theta": 2.0}, "devices": {"drift": 0.1}}


def test_tensorboard_shows_every_round_once(tmp_path: Path) -> None:
    """Rounds 1 to 4, then from 3 on again after a crash."""
    pytest.importorskip("tensorboard", reason="there is no TensorBoard: pip install 'feddyn[tracking]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for rounds, done in ((range(1, 5), 0), (range(3, 7), 2)):
        tracker = TRACKERS["tensorboard"](tmp_path, "FedDyn", {}, done)
        assert tracker.fresh == (done == 0)
        for number in rounds:
            tracker.line(line(number))
        tracker.close("finished")
    found = EventAccumulator(str(tmp_path / "events"))
    found.Reload()
    assert [event.step for event in found.Scalars("models/all/loss")] == [1, 2, 3, 4, 5, 6]
    assert [event.value for event in found.Scalars("models/all/loss")][-1] == pytest.approx(1 / 6, rel=1e-5)
    assert {"transmitted", "bytes_up", "norms/theta", "devices/drift"} <= set(found.Tags()["scalars"])


def test_mlflow_goes_on_with_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="there is no MLflow: pip install mlflow-skinny")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for rounds in (range(1, 3), range(3, 5)):
        tracker = TRACKERS["mlflow"](tmp_path / "run", "FedDyn", {"solver": {"lr": 0.1}}, rounds[0] - 1)
        for number in rounds:
            tracker.line(line(number))
        tracker.close("finished")
    client = mlflow.MlflowClient((tmp_path / "mlruns").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("feddyn").experiment_id])
    assert run.data.params == {"solver.lr": "0.1"}
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "models.all.loss")] == [1, 2, 3, 4]


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feddyn.reports.tracking.find_spec", lambda name: None)
    with pytest.raises(FeddynError, match="--track mlflow needs a package that is not installed"):
        require(["mlflow"])


def test_trackers_are_not_imported_unless_asked_for() -> None:
    words = "import sys, feddyn, feddyn.cli, feddyn.reports.report, feddyn.reports.tracking\n"
    words += "assert not {'tensorboard', 'mlflow', 'optuna', 'plotly', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", words], check=True)
