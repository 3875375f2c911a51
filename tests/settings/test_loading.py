"""Runs from their records: the models give the recorded figures again, with feddyn and with plain PyTorch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import feddyn
from feddyn.data.datasets import sources
from feddyn.errors import InputError
from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from tests.conftest import make_logistic

SETTING: dict[str, Any] = {
    "rounds": 3,
    "participation": 4,
    "model": {"name": "linear", "dtype": "float64"},
    "population": {"source": "synthetic", "kind": "type2", "devices": 6},
    "algorithm": {"name": "feddyn", "alpha": 0.1},
    "solver": {"lr": 0.1, "epochs": 2, "batch_size": 10},
}
MNIST: dict[str, Any] = {
    "rounds": 2,
    "participation": 3,
    "model": {"name": "mlp", "hidden": 20},
    "population": {"source": "mnist", "split": "dirichlet", "concentration": 0.3},
    "algorithm": {"name": "feddyn", "alpha": 0.01},
    "solver": {"lr": 0.1, "epochs": 1, "batch_size": 50},
}


def recorded(setting: dict[str, Any], out: Path, folder: Path = Path()) -> feddyn.Run:
    """A run of a setting, from its record."""
    ((_, plan),) = plans(setting, folder=folder)
    for _ in Simulation(plan, out, workers=1):
        pass
    return feddyn.load(out)


def accuracy(outputs: torch.Tensor, y: Any) -> float:
    return float((outputs.argmax(1) == torch.as_tensor(y)).double().mean())


@pytest.mark.parametrize("name", ["server", "active", "all"])
def test_a_loaded_model_has_the_recorded_accuracy(tmp_path: Path, name: Any) -> None:
    run = recorded(SETTING, tmp_path / "r")
    data = feddyn.synthetic("type2", devices=6)
    figures = run.history[-1]["models"][name]
    model = run.model(name)
    assert not model.training
    assert accuracy(run.predict(data.x, name), data.y) == figures["accuracy"]
    assert accuracy(model(data.x.double()), data.y) == figures["accuracy"]
    assert run.evaluate(data, name).figures == {"loss": figures["loss"], "accuracy": figures["accuracy"]}


def test_the_named_weights_are_those_of_the_model_that_counts(tmp_path: Path) -> None:
    run = recorded(SETTING, tmp_path / "r")
    named = load_file(tmp_path / "r" / "state_dict.safetensors")
    own = nn.Sequential(nn.Flatten(), nn.Linear(30, 5)).double()
    own.load_state_dict(named)
    assert run.headline[0] == "all"
    assert torch.equal(nn.utils.parameters_to_vector(own.parameters()), run.models["all"])
    assert {key: value.tolist() for key, value in run.state_dict().items()} == {k: v.tolist() for k, v in named.items()}


def test_mnist_with_plain_pytorch(tmp_path: Path) -> None:
    """The recorded accuracy from the record's files alone: the state_dict, and the mean and deviation of the inputs."""
    if sources.state("mnist") != "yes":
        pytest.skip("there is no MNIST: feddyn data fetch mnist")
    run = recorded(MNIST, tmp_path / "r")
    data, right = sources.load("mnist"), run.history[-1]["models"]["all"]["accuracy"]
    assert accuracy(run.predict(data.test_x), data.test_y) == right

    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 10))
    net.load_state_dict(load_file(tmp_path / "r" / "state_dict.safetensors"))
    inputs = json.loads((tmp_path / "r" / "inputs.json").read_text())
    assert inputs["sample"] == {"shape": [1, 28, 28], "dtype": "uint8"}
    (mean,), (std,) = inputs["transform"]["mean"], inputs["transform"]["std"]
    x = (torch.from_numpy(np.array(data.test_x)).float() / 255 - mean) / std
    with torch.no_grad():
        assert accuracy(net(x), data.test_y) == right


def test_a_run_in_memory_is_given_its_model_again(tmp_path: Path, logistic: nn.Module) -> None:
    data, out = make_logistic([20, 30, 10]), tmp_path / "r"
    options: dict[str, Any] = {"participation": 2, "rounds": 2, "workers": 1}
    live = feddyn.simulate(logistic, data, feddyn.FedAvg(), feddyn.SGD(lr=0.1, epochs=1), out=out, **options)
    with pytest.raises(InputError, match=r"existed only in memory: make it again and call feddyn.load\(DIR, model="):
        feddyn.load(out).model()
    with pytest.raises(InputError, match=r"10 trainable parameters, but those of the run in .* have 15"):
        feddyn.load(out, model=nn.Linear(4, 2).double()).model()
    run = feddyn.load(out, model=nn.Linear(4, 3).double())
    assert torch.equal(run.predict(data.x), live.predict(data.x))
    assert run.history == live.history
    assert run.headline == live.headline
    assert run.status == live.status
    assert live.seconds > 0
    assert run.on_devices == {"device": ["0", "1", "2"], "samples": [20, 30, 10]}


def shifted(x: torch.Tensor, dtype: torch.dtype, generator: torch.Generator | None = None) -> torch.Tensor:
    return x.to(dtype) + 1


def test_what_else_existed_only_in_memory_is_asked_for_when_it_is_needed(tmp_path: Path, logistic: nn.Module) -> None:
    plain = make_logistic([20, 30])
    data = feddyn.Population.from_parts(plain.x, plain.y, [range(20), range(20, 50)], transform=shifted)
    metric = feddyn.Metric("hits", lambda output, y: ((output.argmax(1) == y).sum(), len(y)))
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    options: dict[str, Any] = {"participation": 1.0, "rounds": 1, "workers": 1, "metrics": [metric], "loss": loss}
    solver = feddyn.SGD(lr=0.1, epochs=1)
    live = feddyn.simulate(logistic, data, feddyn.FedAvg(), solver, out=tmp_path / "r", **options)
    run = feddyn.load(tmp_path / "r", model=logistic)
    with pytest.raises(InputError, match=r"shifted existed only in memory .* feddyn.load\(DIR, transform=\.\.\.\)"):
        run.predict(plain.x)
    run = feddyn.load(tmp_path / "r", model=logistic, transform=shifted)
    assert torch.equal(run.predict(plain.x), live.predict(plain.x))
    with pytest.raises(InputError, match=r"^torch.*CrossEntropyLoss existed only in memory .* loss="):
        run.evaluate(plain)
    run = feddyn.load(tmp_path / "r", model=logistic, transform=shifted, loss=loss)
    with pytest.raises(InputError, match=r"^hits existed only in memory .* metrics="):
        run.evaluate(plain)
    run = feddyn.load(tmp_path / "r", model=logistic, transform=shifted, loss=loss, metrics=[metric])
    figures = dict(live.history[-1]["models"]["all"])
    del figures["objective"]
    assert run.evaluate(plain).figures == figures


def test_code_of_ones_own_runs_only_when_the_model_is_needed(tmp_path: Path) -> None:
    source = "from torch import nn\ndef net(features, classes):\n    return nn.Linear(features, classes)\n"
    (tmp_path / "mine.py").write_text(source)
    recorded({**SETTING, "model": {"name": "mine.py:net", "dtype": "float64"}}, tmp_path / "r", tmp_path)
    (tmp_path / "mine.py").unlink()
    copy = tmp_path / "r" / "code" / "mine.py"
    run = feddyn.load(tmp_path / "r")
    assert run.predict(torch.zeros(2, 30)).shape == (2, 5)
    copy.write_text("raise SystemExit('boom')")
    run = feddyn.load(tmp_path / "r")
    with pytest.raises(InputError, match="boom"):
        run.model()


def test_wrong_samples_are_one_sentence(tmp_path: Path) -> None:
    run = recorded(SETTING, tmp_path / "r")
    with pytest.raises(InputError, match=r"does not take samples of shape \(7,\)"):
        run.predict(torch.zeros(2, 7))
    with pytest.raises(InputError, match="holds no samples"):
        run.predict(torch.zeros(0, 30))
    with pytest.raises(InputError, match="the model 'al' is not known; did you mean 'all'"):
        run.model("al")  # type: ignore[arg-type]


def test_a_record_without_models_can_be_looked_at(tmp_path: Path) -> None:
    recorded(SETTING, tmp_path / "r")
    for name in ("models.safetensors", "state_dict.safetensors", "inputs.json", "devices.json"):
        (tmp_path / "r" / name).unlink()
    run = feddyn.load(tmp_path / "r")
    assert run.best == min(run.figures)
    with pytest.raises(InputError, match="the run has no models"):
        run.model()


def test_an_old_record_finds_its_transform_by_its_data(tmp_path: Path) -> None:
    if sources.state("mnist") != "yes":
        pytest.skip("there is no MNIST: feddyn data fetch mnist")
    run = recorded(MNIST | {"rounds": 1}, tmp_path / "r")
    (tmp_path / "r" / "inputs.json").unlink()
    x = sources.load("mnist").test_x[:50]
    assert torch.equal(feddyn.load(tmp_path / "r").predict(x), run.predict(x))


def test_damaged_models_are_one_sentence(tmp_path: Path) -> None:
    recorded(SETTING, tmp_path / "r")
    (tmp_path / "r" / "models.safetensors").write_bytes(b"\x09")
    with pytest.raises(InputError, match=r"models.safetensors is damaged"):
        feddyn.load(tmp_path / "r")
    with pytest.raises(InputError, match="there is no record of a run"):
        feddyn.load(tmp_path)
