"""A run from its record, with models that can be used."""

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from feddyn.algorithms.base import Vector
from feddyn.data.transforms import Transform, from_table
from feddyn.errors import InputError
from feddyn.metrics import Metric
from feddyn.models.flat import Loss
from feddyn.records.files import home
from feddyn.records.layout import is_record
from feddyn.records.reader import RunRecord, read
from feddyn.runs.parts import Parts
from feddyn.runs.run import Run
from feddyn.settings.building import network, plans
from feddyn.settings.checking import draft
from feddyn.settings.documents import expand


def load(
    directory: str | PathLike[str],
    *,
    model: nn.Module | None = None,
    transform: Transform | None = None,
    loss: Loss | None = None,
    metrics: Sequence[Metric] = (),
) -> Run:
    """The run whose record is in a directory: what `feddyn run` or `simulate(..., out=DIR)` wrote there.

    A setting's network is made again when it is first needed; if it is code of one's own, that is when the record's
    copy of it runs. What existed only in memory has to be given again: `model`, a module of the same layers (its
    parameters do not matter), `transform`, `loss` and `metrics`.
    """
    path = home(Path(directory))
    if model is not None and not isinstance(model, nn.Module):
        raise InputError(f"load: model must be a torch.nn.Module, not {model!r}")
    if not is_record(path):
        raise InputError(f"there is no record of a run in {path}: a comparison has one in each of its folders")
    record = read(path)
    models = _models(record)
    make = partial(_parts, record, models, model, transform, loss, metrics)
    run = Run(
        dict(record.setting),
        make,
        models,
        dict(record.initial),
        [dict(line) for line in record.history],
        record.status,
        record.message,
        on_devices={name: list(column) for name, column in record.on_devices.items()},
        seconds=record.seconds,
        path=path,
        inputs=record.inputs,
        classes=record.classes,
    )
    if target := record.setting.get("target"):
        reached = run.first_at(target["value"])
        run.reached = None if reached is None else dict(reached)
    return run


def _models(record: RunRecord) -> dict[str, Vector]:
    """The flat vectors, none where the record has none."""
    try:
        return load_file(record.weights) if record.weights.exists() else {}
    except (OSError, SafetensorError) as error:
        raise InputError(f"{record.weights} is damaged: {error}") from None


def _parts(
    record: RunRecord,
    models: dict[str, Vector],
    model: nn.Module | None,
    transform: Transform | None,
    loss: Loss | None,
    metrics: Sequence[Metric],
) -> Parts:
    """What makes a record's vectors a model again: as its setting says, or as it is given."""
    setting, folder = _simulated(record), record.path
    given = {metric.name: metric for metric in metrics}
    if setting.get("needs"):
        if model is None:
            raise InputError(
                f"the model of the run in {folder} existed only in memory: make it again and call "
                "feddyn.load(DIR, model=YOURS)"
            )
        own = setting["evaluation"].get("metrics", [])
        measured = [given.get(metric["name"]) or Metric(metric["name"], _gone("metrics", metric)) for metric in own]
        found = nn.functional.cross_entropy if "loss" not in setting else _gone("loss", setting["loss"])
    else:
        ((_, single),) = expand(setting)
        checked = draft(single, folder)
        model = model or network(checked, checked.model_table)
        measured, found = [given.get(metric.name, metric) for metric in checked.evaluation.metrics], checked.loss
    size = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if other := next((name for name, vector in models.items() if vector.numel() != size), None):
        raise InputError(
            f"the model has {size} trainable parameters, but those of the run in {folder} have "
            f"{models[other].numel()}: give a module of the same layers"
        )
    return Parts(model, transform or _transform(record), loss or found, measured)


def _simulated(record: RunRecord) -> dict[str, Any]:
    """A record's setting as one that can be simulated; that of a deployment says neither rounds nor who was active."""
    setting = dict(record.setting)
    if setting.pop("deployment", None) is None:
        return setting
    return {"rounds": 1, "participation": 1.0, **setting}


def _transform(record: RunRecord) -> Transform | None:
    """What was done to raw samples, by what the record says; an old record does not, but its data does."""
    inputs, setting = record.inputs, _simulated(record)
    table = inputs.get("transform")
    if inputs and table is None:
        return None
    if table is not None and (known := from_table(table)) is not None:
        return known
    if setting.get("needs"):
        return _gone("transform", table) if table else None
    ((_, plan),) = plans(setting, folder=record.path)
    return plan.population.transform


def _gone(what: str, table: dict[str, Any]) -> Callable[..., Any]:
    """Stands for a function that existed only in memory until somebody needs it."""

    def refuse(*_: object) -> NoReturn:
        raise InputError(
            f"{table['name']} existed only in memory when the run was made: give it again, feddyn.load(DIR, {what}=...)"
        )

    return refuse
