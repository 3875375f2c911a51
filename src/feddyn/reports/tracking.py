"""A live view of a run in other tools: TensorBoard event files, MLflow, or Weights & Biases; none is imported unless
asked for."""

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from feddyn.errors import FeddynError
from feddyn.records.layout import Status
from feddyn.records.recorded import dotted

NEEDS = {
    "tensorboard": ("tensorboard", "feddyn[tracking]"),
    "mlflow": ("mlflow", "mlflow-skinny"),
    "wandb": ("wandb", "feddyn[wandb]"),
}
"""The module that a tracker needs, and what to install for it."""


def require(names: Sequence[str]) -> None:
    """Refuse trackers that are not installed, before any work is done."""
    for name in names:
        module, package = NEEDS[name]
        if find_spec(module) is None:
            raise FeddynError(f"--track {name} needs a package that is not installed: pip install '{package}'")


class Tracker(ABC):
    """Takes the lines of a run's record while it goes on; `fresh`: it has none of them yet."""

    fresh: bool

    @abstractmethod
    def line(self, line: Mapping[str, Any]) -> None:
        """A round: every figure by its dotted name, and what was transmitted."""

    @abstractmethod
    def close(self, status: str) -> None:
        """The run has ended, or paused."""


def _values(line: Mapping[str, Any]) -> dict[str, float]:
    counts = {name: float(line[name]) for name in ("transmitted", "bytes_up", "bytes_down", "gradients")}
    return counts | dict(dotted(line))


class TensorBoard(Tracker):
    """Event files in `events` beside the record; a run that goes on after round `done` replaces what was behind it."""

    def __init__(self, directory: Path, label: str, setting: Mapping[str, Any], done: int):
        from torch.utils.tensorboard import SummaryWriter

        self.fresh = not (directory / "events").exists()
        self._writer = SummaryWriter(str(directory / "events"), purge_step=done + 1)

    def line(self, line: Mapping[str, Any]) -> None:
        for name, value in _values(line).items():
            self._writer.add_scalar(name.replace(".", "/"), value, line["round"])
        self._writer.flush()

    def close(self, status: str) -> None:
        self._writer.close()


class MLflow(Tracker):
    """A run in the experiment `feddyn`, in $MLFLOW_TRACKING_URI or else in files in `mlruns` beside the records; a run
    that goes on is found by its directory."""

    def __init__(self, directory: Path, label: str, setting: Mapping[str, Any], done: int):
        from mlflow import MlflowClient

        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow 3 refuses its file store without it
        home = os.environ.get("MLFLOW_TRACKING_URI") or (directory.resolve().parent / "mlruns").as_uri()
        self._client = MlflowClient(home)
        experiment = self._client.get_experiment_by_name("feddyn")
        number = experiment.experiment_id if experiment else self._client.create_experiment("feddyn")
        name = str(directory.resolve())
        known = self._client.search_runs([number], f"tags.record = {json.dumps(name)}", max_results=1)
        self.fresh = not known
        if known:
            self._run = known[0].info.run_id
        else:
            self._run = self._client.create_run(number, run_name=label, tags={"record": name}).info.run_id
            for key, value in _flat(setting):
                self._client.log_param(self._run, key, value)

    def line(self, line: Mapping[str, Any]) -> None:
        for name, value in _values(line).items():
            self._client.log_metric(self._run, name, value, step=line["round"])

    def close(self, status: str) -> None:
        word = "FINISHED" if Status(status).complete else "FAILED" if status == Status.DIVERGED else "KILLED"
        self._client.set_terminated(self._run, word)


class WandB(Tracker):
    """A run of the project `feddyn` in files for `wandb sync`, in `wandb` of the current folder or $WANDB_DIR (not in
    a record: there are links among them); with $WANDB_MODE=online on the server that is logged in to. A run that goes
    on has the same id, which follows from its directory."""

    def __init__(self, directory: Path, label: str, setting: Mapping[str, Any], done: int):
        import wandb

        name = hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:16]
        mode = os.environ.get("WANDB_MODE", "offline")
        self.fresh = not any(Path(os.environ.get("WANDB_DIR", ""), "wandb").glob(f"*-{name}"))
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "feddyn"),
            id=name,
            name=label,
            config=dict(setting),
            resume="allow" if mode == "online" else None,
            # nothing of the machine, its code or what it prints
            settings=wandb.Settings(
                mode=mode, silent=True, console="off", disable_code=True, disable_git=True, x_disable_stats=True
            ),
        )

    def line(self, line: Mapping[str, Any]) -> None:
        self._run.log(_values(line), step=line["round"])

    def close(self, status: str) -> None:
        self._run.summary["status"] = str(status)
        self._run.finish(exit_code=0 if Status(status).complete else 1)


TRACKERS: Mapping[str, type[TensorBoard] | type[MLflow] | type[WandB]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WandB,
}


def _flat(setting: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found = []
    for key, value in setting.items():
        found += _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else [(before + key, value)]
    return found
