"""What people give by mistake is refused in a sentence, and a population says what it holds."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import feddyn

X, Y = np.arange(24, dtype=np.float32).reshape(8, 3), np.arange(8) % 2
DEVICE = ["a", "a", "b", "b", "b", "c", "c", "c"]
SET = TensorDataset(torch.tensor(X), torch.tensor(Y))
make = feddyn.Population.from_arrays


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(SET)


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: make(X, Y, DEVICE, test=X), r"must be its samples and its targets, test=\(x, y\), not a ndarray"),  # type: ignore[arg-type]
        (lambda: make(X, Y, DEVICE, test=(X, Y, Y)), "not 3 of them"),  # type: ignore[arg-type]
        (lambda: feddyn.Population.on_demand(lambda k: (X, Y), [8], test=X), "must be its samples and its targets"),  # type: ignore[arg-type]
        (lambda: feddyn.Population.from_datasets([DataLoader(SET)]), "device 0 is a DataLoader: give its Dataset"),  # type: ignore[list-item]
        (lambda: feddyn.Population.from_datasets(SET), "takes a list of Datasets, one for each device"),  # type: ignore[arg-type]
        (lambda: feddyn.Population.from_datasets([SET, Stream()]), "device 1 is no Dataset with a length"),
        (lambda: feddyn.Population.from_datasets([SET], test=Stream()), "the test set is no Dataset with a length"),
        (lambda: make(X, Y, [None, *DEVICE[1:]]), "no value in row 0"),  # type: ignore[arg-type]
        (lambda: make(X, Y, [0, 0, 0, np.nan, 1, 1, 1, 1]), "no value in row 3"),
        (lambda: make(X, Y, [[0, 1], [0]] * 4), "has lists in it, of unequal lengths"),
    ],
)
def test_data_that_cannot_be_meant(attempt: Callable[[], object], sentence: str) -> None:
    with pytest.raises(feddyn.InputError, match=sentence):
        attempt()


@pytest.mark.parametrize(
    ("model", "y", "loss", "sentence"),
    [
        (nn.Linear(3, 2).half(), Y, nn.functional.cross_entropy, r"not torch.float16 on cpu: model.float\(\) makes"),
        (nn.Linear(3, 1), Y.astype("f4"), nn.functional.mse_loss, r"of shape \(n, 1\) are y\[:, None\]"),
        (nn.Linear(3, 1), Y.astype("f4"), nn.functional.cross_entropy, "for regression, loss=mse_loss"),
        (nn.Linear(3, 2), Y, nn.CrossEntropyLoss, r"the class CrossEntropyLoss: give one of it, CrossEntropyLoss\("),
    ],
)
def test_models_and_losses_that_cannot_be_meant(model: nn.Module, y: Any, loss: Any, sentence: str) -> None:
    with pytest.raises(feddyn.InputError, match=sentence):
        feddyn.simulate(
            model, make(X, y, DEVICE), feddyn.FedAvg(), feddyn.SGD(0.1, epochs=1), participation=1, rounds=1, loss=loss
        )


def test_a_population_says_what_it_holds() -> None:
    population = make(X, Y, DEVICE, test=(X, Y))
    assert repr(population) == (
        "Population(3 devices, 8 samples (2 to 3 a device) of (3,) torch.float32, 2 classes, 8 test samples)"
    )
    lazy = feddyn.Population.on_demand(lambda k: (X, Y[:, None] / 1.0), [8] * 5, test=(X, Y[:, None] / 1.0))
    assert repr(lazy) == (
        "Population(5 devices, 40 samples (8 a device) of (3,) torch.float32, "
        "targets (1,) torch.float64, 8 test samples)"
    )


def test_a_notebook_shows_sizes_and_classes() -> None:
    """A field for each device and class, as dark as the class's share: device b has classes 0, 1, 0."""
    shown = make(X, Y, ["<a>", "<a>", *DEVICE[2:]])._repr_html_()
    assert "&lt;a&gt;" in shown
    assert "<a>" not in shown
    shades = {title: shade for shade, title in re.findall(r'fill-opacity="([\d.]+)"><title>(.*?)</title>', shown)}
    assert shades["b: 2 of class 0"] == "0.68"
    assert shades["b: 1 of class 1"] == "0.36"
    many = make(np.zeros((100, 1)), np.zeros((100, 1)), np.arange(100))._repr_html_()
    assert "and 60 more devices" in many
    assert "<title>" not in many
