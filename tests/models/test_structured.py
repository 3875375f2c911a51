"""Models of several inputs and outputs: the same mathematics as with one tensor, so the same figures."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

import feddyn
from feddyn.batches import joined, mapped, split
from feddyn.data.reading import padded
from feddyn.models.flat import FlatModel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = (X[:, 0] > 0) * 1 + (X[:, 1] > 0.5)
DEVICE = np.repeat(np.arange(6), 10)
HALVES = {"left": X[:, :2], "right": X[:, 2:]}


class One(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(x)
        return found


class Two(One):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> Any:  # type: ignore[override]
        return super().forward(torch.cat([left, right], -1))


class Named(Two):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> Any:  # type: ignore[override]
        return {"logits": super().forward(left, right), "norm": left.norm(dim=-1)}


def of_logits(output: Mapping[str, torch.Tensor], y: torch.Tensor) -> torch.Tensor:
    return cross_entropy(output["logits"], y)


def train(model: type[One], x: Any, loss: Any = cross_entropy, **how: Any) -> feddyn.Run:
    torch.manual_seed(0)
    population = feddyn.Population.from_arrays(x, Y, DEVICE, test=(x, Y))
    solver = feddyn.SGD(0.2, epochs=2, batch_size=4)
    words: dict[str, Any] = {"participation": 3, "rounds": 3, "workers": 1, **how}
    return feddyn.simulate(model().double(), population, feddyn.FedDyn(0.1), solver, loss=loss, **words)


@pytest.mark.parametrize("stack", [1, 3])
@pytest.mark.parametrize(
    ("model", "x", "loss"),
    [(Two, HALVES, cross_entropy), (Two, tuple(HALVES.values()), cross_entropy), (Named, HALVES, of_logits)],
    ids=["by name", "by place", "to a dict"],
)
def test_several_inputs_are_the_same_model(model: type[One], x: Any, loss: Any, stack: int) -> None:
    """A model of two inputs that joins them is the model of one input, one by one and in stacks."""
    plain, found = train(One, X, stack=1), train(model, x, loss, stack=stack)
    for name, theta in plain.models.items():
        assert torch.allclose(found.models[name], theta, rtol=0, atol=1e-12)
    figures, others = (run.history[-1]["models"]["all"] for run in (plain, found))
    assert others["accuracy"] == figures["accuracy"]
    assert others["loss"] == pytest.approx(figures["loss"], abs=1e-12)
    outputs = found.predict(x)
    logits = outputs["logits"] if loss is of_logits else outputs
    assert torch.equal(logits.argmax(1), plain.predict(X).argmax(1))


def test_a_run_of_several_inputs_goes_on_and_knows_its_data(tmp_path: Any) -> None:
    whole = train(Two, HALVES, rounds=4)
    again = train(Two, HALVES, out=tmp_path / "b", rounds=4)
    assert torch.equal(again.models["all"], whole.models["all"])
    with pytest.raises(feddyn.InputError, match="has another setting"):
        train(Two, {**HALVES, "left": HALVES["left"] + 1}, out=tmp_path / "b", rounds=4, resume=True)
    make = feddyn.Population.from_arrays
    assert make(HALVES, Y, DEVICE).sha256() != make(dict(a=X[:, :2], right=X[:, 2:]), Y, DEVICE).sha256()  # noqa: C408


def test_workers_and_data_on_demand_take_several_inputs() -> None:
    one, two = train(Two, HALVES, workers=1), train(Two, HALVES, workers=2)
    assert torch.equal(one.models["all"], two.models["all"])

    def make(k: int) -> tuple[dict[str, Any], Any]:
        rows = slice(10 * k, 10 * k + 10)
        return {name: part[rows] for name, part in HALVES.items()}, Y[rows]

    torch.manual_seed(0)
    lazy = feddyn.Population.on_demand(make, [10] * 6, test=(HALVES, Y))
    solver = feddyn.SGD(0.2, epochs=2, batch_size=4)
    run = feddyn.simulate(Two().double(), lazy, feddyn.FedDyn(0.1), solver, participation=3, rounds=3, workers=1)
    assert torch.equal(run.models["all"], one.models["all"])


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ({"left": X[:, :2], "right": X[:9, 2:]}, "has 9 samples but 60 targets"),
        ({"left": X[:, :2], "right": np.where(X[:, 2:] > 2, np.nan, X[:, 2:])}, "NaN or infinite, first in row"),
        ({"left": X[:, :2], "wrong": X[:, 2:]}, "does not fit the devices' samples .*wrong: .3,. torch.float64"),
        ({}, "holds no samples"),
    ],
)
def test_inputs_that_do_not_fit(x: Any, sentence: str) -> None:
    with pytest.raises(feddyn.InputError, match=sentence):
        train(Two, x)


class Patient(nn.Module):
    """An image and a row of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 2, 3), nn.Linear(2 * 4 + 2, 2)

    def forward(self, image: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(torch.cat([self.conv(image).flatten(1), row], 1))
        return found


def test_an_image_and_a_row_go_together() -> None:
    """The gradient is autograd's, and the model learns a class that needs both."""
    images, table = RNG.normal(size=(60, 1, 4, 4)), RNG.normal(size=(60, 2))
    y = (images.mean((1, 2, 3)) + 0.3 * table[:, 0] > 0).astype(int)
    x = {"image": images, "row": table}
    torch.manual_seed(0)
    model = Patient().double()
    batch = {name: torch.tensor(part) for name, part in x.items()}
    slopes = torch.autograd.grad(cross_entropy(model(**batch), torch.tensor(y)), list(model.parameters()))
    flat = FlatModel(model)
    flat.channels_last = True
    found = flat.gradient(batch, torch.tensor(y))
    assert torch.allclose(found, torch.cat([slope.flatten() for slope in slopes]), atol=1e-12)
    population = feddyn.Population.from_arrays(x, y, DEVICE)
    solver = feddyn.SGD(0.5, epochs=10, batch_size=10)
    run = feddyn.simulate(model, population, feddyn.FedAvg(), solver, participation=1.0, rounds=5, workers=1)
    assert run.history[-1]["models"]["server"]["accuracy"] > 0.9


class Texts(Dataset[Any]):
    """Sequences of unequal lengths, each token with its mask; the class is whether most tokens are odd."""

    def __init__(self, seed: int, size: int):
        rng = np.random.default_rng(seed)
        self.tokens = [torch.tensor(rng.integers(1, 9, rng.integers(2, 7))) for _ in range(size)]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, i: int) -> tuple[dict[str, torch.Tensor], int]:
        tokens = self.tokens[i]
        return {"tokens": tokens, "mask": torch.ones(len(tokens))}, int((tokens % 2).double().mean() > 0.5)


class Reader(nn.Module):
    """The mean of the embeddings of the tokens that the mask has."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights = (mask / mask.sum(-1, keepdim=True))[..., None]
        found: torch.Tensor = self.head((self.embed(tokens) * weights).sum(-2))
        return found


def test_texts_of_unequal_lengths_are_padded_and_masked() -> None:
    """What is filled up does not count: the padded batch gives what single texts give."""
    parts = [Texts(seed, 30) for seed in range(4)]
    population = feddyn.Population.from_datasets(parts[:3], test=parts[3], collate=padded)
    longest = max(len(tokens) for part in parts for tokens in part.tokens)
    assert population.x["tokens"].shape == (90, longest)
    assert population.test is not None
    torch.manual_seed(0)
    model = Reader()
    single = torch.cat(
        [model(text["tokens"][None], text["mask"][None]) for text, _ in (parts[3][i] for i in range(30))]
    )
    assert torch.allclose(model(**population.test[0]), single, atol=1e-6)
    run = feddyn.simulate(
        model, population, feddyn.FedAvg(), feddyn.SGD(1.0, epochs=5, batch_size=4), participation=1.0, rounds=8
    )
    assert run.history[-1]["models"]["server"]["accuracy"] > 0.85
    with pytest.raises(feddyn.InputError, match=r"collate=feddyn\.data\.reading\.padded"):
        feddyn.Population.from_datasets(parts)
    with pytest.raises(feddyn.InputError, match=r"collate does not make .*: IndexError: .* \(test_structured.py, line"):
        feddyn.Population.from_datasets(parts, collate=lambda items: items[len(items)])
    with pytest.raises(feddyn.InputError, match="collate makes batches of 1 samples of 120 items"):
        feddyn.Population.from_datasets(parts, collate=lambda items: (torch.zeros(1, 2), torch.zeros(1)))


def test_batches_keep_their_form() -> None:
    batch: Any = {"a": torch.arange(6.0), "b": (torch.arange(12.0).view(6, 2), "a word")}
    parts = split(batch, 4)
    assert [len(part["a"]) for part in parts] == [4, 2]
    again = joined(parts)
    assert torch.equal(again["b"][0], batch["b"][0])
    assert again["b"][1] == "a word"
    assert mapped(torch.neg, (torch.ones(1),)) == (-torch.ones(1),)
