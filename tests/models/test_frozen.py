"""A frozen base is no part of a device's problem: not trained, not kept, not sent."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import feddyn

RNG = np.random.default_rng(0)
X, Y, DEVICE = RNG.normal(size=(60, 4)), RNG.integers(0, 3, 60), np.repeat(np.arange(6), 10)


def network(seed: int = 0) -> Any:
    """A frozen layer of 4 x 8 + 8 parameters under a trainable one of 8 x 3 + 3."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    model[0].requires_grad_(False)
    return model


def train(model: nn.Module, x: Any = X, **how: Any) -> feddyn.Run:
    population = feddyn.Population.from_arrays(x, Y, DEVICE, test=(x, Y))
    words: dict[str, Any] = {"participation": 3, "rounds": 3, "workers": 1, **how}
    return feddyn.simulate(model, population, feddyn.FedDyn(0.1), feddyn.SGD(0.2, epochs=2, batch_size=4), **words)


@pytest.mark.parametrize("stack", [1, 3])
def test_it_is_training_the_rest_on_what_the_base_gives(stack: int) -> None:
    """The same as training the upper layer alone, on the features that the base makes of the samples."""
    model = network()
    with torch.no_grad():
        features = model[:2](torch.tensor(X))
    above, whole = train(model[2], features, stack=1), train(model, stack=stack)
    assert whole.models["server"].numel() == 27
    assert torch.allclose(whole.models["server"], above.models["server"], rtol=0, atol=1e-12)


def test_only_what_is_trained_is_sent_and_kept(tmp_path: Path) -> None:
    model = network()
    run = train(model, out=tmp_path / "r", checkpoint=feddyn.CheckpointEvery(rounds=1))
    assert run.history[-1]["bytes_up"] == run.history[-1]["bytes_down"] == 3 * 3 * 27 * 8
    assert all(vector.shape == (27,) for vector in load_file(tmp_path / "r" / "models.safetensors").values())
    trained: Any = run.model("server")
    assert torch.equal(trained[0].weight, model[0].weight)
    assert not trained[0].weight.requires_grad
    assert not torch.equal(trained[2].weight, model[2].weight)


def test_another_base_is_another_run(tmp_path: Path) -> None:
    train(network(), out=tmp_path / "r")
    other = network()
    with torch.no_grad():
        other[0].bias.add_(1)
    with pytest.raises(feddyn.InputError, match="another setting"):
        train(other, out=tmp_path / "r", resume=True)
