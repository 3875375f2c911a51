"""A live view in TensorBoard, which goes on with a run; MLflow, where it is installed."""

import subprocess
import sys
import time
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


def logged(folder: Path) -> list[int]:
    """The rounds in the files of Weights & Biases, one file for each time that a run went on."""
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    found = []
    for file in sorted(folder.glob("wandb/offline-run-*/run-*.wandb"), key=lambda file: file.stat().st_mtime_ns):
        store = DataStore()
        store.open_for_scan(str(file))
        while data := store.scan_data():
            record = Record()
            record.ParseFromString(data)
            items = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            found += [int(items["_step"])] if "models.all.loss" in items else []
        store.close()
    return found


def test_weights_and_biases_goes_on_with_the_same_run_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="there is no Weights & Biases: pip install 'feddyn[wandb]'")
    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)
    for rounds in (range(1, 3), range(3, 5)):
        tracker = TRACKERS["wandb"](tmp_path / "run", "FedDyn", {"solver": {"lr": 0.1}}, rounds[0] - 1)
        assert tracker.fresh == (rounds[0] == 1)
        for number in rounds:
            tracker.line(line(number))
        tracker.close("finished")
        second = time.time() // 1
        while time.time() // 1 == second:  # its folders are named by the second
            time.sleep(0.05)
    assert logged(tmp_path) == [1, 2, 3, 4]
    assert not (tmp_path / "run").exists()  # records refuse the links that are in their files
    assert len({path.name.rpartition("-")[2] for path in (tmp_path / "wandb").glob("offline-run-*")}) == 1


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feddyn.reports.tracking.find_spec", lambda name: None)
    with pytest.raises(FeddynError, match="--track mlflow needs a package that is not installed"):
        require(["mlflow"])


def test_trackers_are_not_imported_unless_asked_for() -> None:
    words = "import sys, feddyn, feddyn.cli, feddyn.reports.report, feddyn.reports.tracking\n"
    words += "assert not {'tensorboard', 'mlflow', 'wandb', 'optuna', 'plotly', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", words], check=True)
