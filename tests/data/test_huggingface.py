"""Hugging Face's data sets and Flower's partitioners, on data that is made here: no hub is asked."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn

datasets = pytest.importorskip("datasets")
make = feddyn.Population.from_huggingface
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
SITES = [f"site {k % 3}" for k in range(40)]


def rows(**more: Any) -> Any:
    return datasets.Dataset.from_dict({"x": X.tolist(), "y": Y.tolist(), "site": SITES, **more})


def test_a_column_says_whose_a_row_is() -> None:
    population = make(rows(), label="y", device="site", test=rows().select(range(10, 40)))
    plain = feddyn.Population.from_arrays(X, Y, SITES, test=(X[10:], Y[10:]))
    assert population.sha256() == plain.sha256()
    run = feddyn.simulate(
        nn.Linear(3, 2).double(), population, feddyn.FedDyn(0.1), feddyn.SGD(0.5, epochs=5), participation=2, rounds=3
    )
    assert run.history[-1]["models"]["server"]["accuracy"] > 0.8


def test_flowers_partitioners_make_the_devices() -> None:
    partitioners = pytest.importorskip("flwr_datasets.partitioner")
    data = rows()
    population = make(data, label="y", inputs="x", device=partitioners.IidPartitioner(num_partitions=4))
    assert population.sizes == [10] * 4
    expected = partitioners.IidPartitioner(num_partitions=4)
    expected.dataset = data
    for k in range(4):
        assert np.allclose(population.samples(k)[0], expected.load_partition(k)["x"])
    by_class = partitioners.PathologicalPartitioner(num_partitions=2, partition_by="y", num_classes_per_partition=1)
    population = make(data, label="y", inputs="x", device=by_class)
    assert [len(population.samples(k)[1].unique()) for k in range(2)] == [1, 1]
    natural = partitioners.NaturalIdPartitioner(partition_by="site")
    assert make(data, label="y", inputs="x", device=natural).devices == 3


def test_tokens_are_padded_and_go_by_their_names() -> None:
    lengths = RNG.integers(1, 6, 40)
    tokens = [RNG.integers(1, 9, n).tolist() for n in lengths]
    masks = [[1] * int(n) for n in lengths]
    data = datasets.Dataset.from_dict({"input_ids": tokens, "attention_mask": masks, "labels": Y.tolist()})
    parts = [data.select(range(20)), data.select(range(20, 40))]
    population = make(parts, label="labels", pad=0)
    assert set(population.x) == {"input_ids", "attention_mask"}
    assert population.x["input_ids"].shape == (40, max(lengths))
    assert population.x["attention_mask"].sum(1).tolist() == lengths.tolist()
    with pytest.raises(feddyn.InputError, match=r"'input_ids' holds arrays of unequal shapes: with pad=0,"):
        make(parts, label="labels")


def test_images_have_their_channels_in_front() -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = RNG.integers(0, 256, (6, 4, 5, 3)).astype(np.uint8)
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    table = {"image": [image.fromarray(one) for one in pixels], "label": [0, 1, 0, 1, 0, 1]}
    data = datasets.Dataset.from_dict(table, features=features)
    population = make([data.select(range(3)), data.select(range(3, 6))], label="label")
    assert population.x.dtype == torch.uint8
    assert np.array_equal(population.x, pixels.transpose(0, 3, 1, 2))


def test_several_labels_and_inputs() -> None:
    data = rows(b=[1 - y for y in Y.tolist()], age=list(range(40)))
    population = make(data, label=["y", "b"], device="site", inputs=["x", "age"])
    assert population.y.shape == (40, 2)
    assert population.y.is_floating_point()
    assert set(population.x) == {"x", "age"}


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"device": "sit"}, "no column 'sit'; did you mean 'site'"),
        ({"device": 3}, "the name of a column, or a partitioner"),
        ({"device": "site", "label": "z"}, "no column 'z'"),
        ({"device": "site", "inputs": ["word"]}, "'word' has texts: make tokens of them first"),
        ({"device": "site", "inputs": ["gap"]}, "'gap' has no value in row 1"),
        ({"device": "gap"}, "'gap' has no value in row 1"),
    ],
)
def test_what_does_not_fit_is_named(how: dict[str, Any], sentence: str) -> None:
    data = rows(word=["w"] * 40, gap=[1.0, None] * 20)
    with pytest.raises(feddyn.InputError, match=sentence):
        make(data, **{"label": "y", "inputs": "x", **how})


def test_what_is_no_data_set() -> None:
    with pytest.raises(feddyn.InputError, match="one split that is loaded"):
        make(datasets.DatasetDict({"train": rows()}), label="y", device="site")
    with pytest.raises(feddyn.InputError, match="one split that is loaded"):
        make(rows().to_iterable_dataset(), label="y", device="site")
    with pytest.raises(feddyn.InputError, match="not a list"):
        make([[1, 2]], label="y")
    with pytest.raises(feddyn.InputError, match="leave out device"):
        make([rows()], label="y", device="site")
    with pytest.raises(feddyn.InputError, match="device 1 has no samples"):
        make([rows(), rows().select([])], label="y", inputs="x")
