"""Other data for a trained model to be evaluated on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from feddyn.data.columns import SUFFIXES, arrays
from feddyn.data.datasets import sources
from feddyn.data.datasets.published import SOURCES
from feddyn.data.datasets.table import again
from feddyn.data.population import Population
from feddyn.errors import InputError, nearest
from feddyn.records.files import home
from feddyn.runs.run import Run
from feddyn.settings.building import plans


def data_for(run: Run, named: str | None) -> Population:
    """What a run is to be evaluated on: its own data again (None), the test set of a published data set by its name, a
    table with the columns of the run's own table, which is encoded as that was, or an npz file with the arrays `x`, `y`
    and, if there are several devices, `device`."""
    if named is None:
        return _own(run)
    if named in SOURCES:
        published = sources.load(named)
        one_device = np.zeros(len(published.test_y), dtype=np.int64)
        return Population.from_arrays(published.test_x, published.test_y, one_device)
    path = home(Path(named))
    if not path.exists() and path.suffix.lower() in SUFFIXES:
        raise InputError(f"there is no file {path}, seen from {Path.cwd()}: give the path of the data")
    if not path.exists():
        hint = nearest(named, SOURCES)
        raise InputError(f"there is no file {named}, nor a data set of that name with a test set of images; {hint}")
    population = run.setting.get("population", {})
    if population.get("source") == "table":
        return again(population, path)
    if path.suffix != ".npz":
        raise InputError(f"{path}: give an npz file with the arrays x, y and device, or the name of a data set")
    return _arrays(path, run.inputs)


def _own(run: Run) -> Population:
    """The population that the run's setting describes."""
    if run.setting.get("needs") or run.path is None:
        raise InputError("the run's own data existed only in memory: name other data to evaluate it on")
    ((_, plan),) = plans(dict(run.setting), folder=run.path)
    return plan.population


def _arrays(path: Path, inputs: Mapping[str, Any]) -> Population:
    """The arrays of a file; whole numbers where the run's samples were none are meant as numbers."""
    found = arrays(path)
    if missing := [name for name in ("x", "y") if name not in found]:
        raise InputError(f"{path} has no array {missing[0]!r}; it has {', '.join(found) or 'none'}")
    if inputs.get("sample", {}).get("dtype", "").startswith("float"):
        found["x"] = found["x"].astype(inputs["dtype"])
    return Population.from_arrays(
        found["x"], found["y"], found.get("device", np.zeros(len(found["y"]), dtype=np.int64))
    )
