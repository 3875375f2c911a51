"""The paper's federations on the real data (where it is), saved splits, augmentation, and Shakespeare's rules."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import feddyn
from feddyn.data import partition
from feddyn.data.datasets import shakespeare, sources
from feddyn.data.datasets.federations import images, load_split, save_split, speeches, split_labels
from feddyn.data.transforms import Images, Tokens
from feddyn.reports.heterogeneity import class_counts, classes_holding

real = pytest.mark.skipif("FEDDYN_DATA" not in os.environ, reason="the real data is not here: FEDDYN_DATA is not set")


@real
def test_mnist_is_as_heterogeneous_as_the_paper_says() -> None:
    """80% of a device's data in 8 classes (IID), mostly 4 or 5 (Dirichlet .6), 3 or 4 (Dirichlet .3)."""
    labels = sources.load("mnist").y
    held = {}
    for name, parts in {
        "iid": partition.iid(labels, 100),
        "0.6": partition.dirichlet(labels, 100, 0.6),
        "0.3": partition.dirichlet(labels, 100, 0.3),
    }.items():
        held[name] = classes_holding(class_counts(labels, parts), 0.8)
    assert held["iid"].mean() == pytest.approx(8, abs=0.1)
    assert 4 <= held["0.6"].mean() <= 5
    assert 3 <= held["0.3"].mean() <= 4
    assert np.isin(held["0.6"], (4, 5)).mean() > 0.6
    assert np.isin(held["0.3"], (3, 4)).mean() > 0.6


@real
def test_shakespeare_has_leafs_counts() -> None:
    corpus = sources.load_shakespeare()
    assert (corpus.plays, len(corpus.roles), int(corpus.samples.sum())) == (36, 1129, 4_226_158)


@real
def test_shakespeare_as_the_paper_uses_it() -> None:
    natural, iid = speeches(), speeches(split="iid")
    for population in (natural, iid):
        assert population.sizes == [2000] * 100
        assert population.test is not None
        assert population.test[0].shape == (40_000, 80)
        assert population.x.dtype == torch.uint8
    key = [tuple(np.sort(p.y.numpy())) for p in (natural, iid)]
    assert key[0] == key[1]  # the same samples, over other devices
    x, y = natural.samples(3)
    assert torch.equal(x[1:, -2], x[:-1, -1])  # a contiguous run: each sample is the one before, moved by one
    assert torch.equal(x[1:, -1], y[:-1])
    with pytest.raises(feddyn.InputError, match="roles have"):
        speeches(devices=1000)


@real
@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar100"])
def test_real_images(name: str) -> None:
    population = images(name, split="dirichlet", concentration=0.3, seed=1)
    assert population.devices == 100
    assert population.x.dtype == torch.uint8
    assert population.transform is not None
    sample = population.transform(population.x[:2000], torch.float32)
    assert abs(float(sample.mean())) < 0.2
    assert 0.7 < float(sample.std()) < 1.3
    assert population.sha256() == images(name, split="dirichlet", concentration=0.3, seed=1).sha256()


def test_a_play_in_leafs_format() -> None:
    """A title above the author, two roles; short roles and stage directions are left out."""
    speech = "x" * 50
    play = [
        "head", "by William Shakespeare", "", "", "THE PLAY", "", "by William Shakespeare", "",
        f"  ANNA. {speech}", f"    {speech}", "  [Exit]", f"  Anna. {speech}", "  BOB. hello", "    there",
    ]  # fmt: skip
    corpus = shakespeare.corpus("\n".join(play))
    assert corpus.plays == 1
    assert corpus.roles == ("THE_PLAY_ANNA",)
    assert corpus.samples.tolist() == [3 * 51 - 80]
    x, y = shakespeare.windows(corpus.codes, np.array([0, 1]))
    assert x.shape == (2, 80)
    letter, space = shakespeare.ALPHABET.index("x"), shakespeare.ALPHABET.index(" ")
    assert x[0, :52].tolist() == [letter] * 50 + [space, letter]
    assert y.tolist() == [letter, letter]
    with pytest.raises(feddyn.InputError, match="has no plays"):
        shakespeare.corpus("nothing")


def test_the_alphabet() -> None:
    assert len(shakespeare.ALPHABET) == 80
    assert len(set(shakespeare.ALPHABET)) == 80
    assert list(shakespeare.ALPHABET) == sorted(shakespeare.ALPHABET)


def test_a_saved_split_is_the_same_split(tmp_path: Path) -> None:
    labels = np.repeat(np.arange(10), 30)
    parts = partition.dirichlet(labels, 7, 0.3)
    save_split(parts, tmp_path / "split.npz")
    again = split_labels(labels, 7, "file", file=str(tmp_path / "split.npz"))
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    assert (tmp_path / "split.npz").stat().st_size < 3000
    with pytest.raises(feddyn.InputError, match="exists"):
        save_split(parts, tmp_path / "split.npz")
    with pytest.raises(feddyn.InputError, match="not one of 299 samples"):
        load_split(tmp_path / "split.npz", 299)
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    with pytest.raises(feddyn.InputError, match="is damaged"):
        load_split(tmp_path / "bad.npz", 300)


def test_splits_say_what_they_need() -> None:
    labels = np.repeat(np.arange(10), 30)
    for arguments, message in (
        ({"split": "dirichlet"}, "needs concentration"),
        ({"split": "iid", "concentration": 0.3}, "has no concentration"),
        ({"split": "shards"}, "needs classes_per_device"),
        ({"split": "shards", "classes_per_device": 2, "sigma": 0.3}, "leave out sigma"),
    ):
        with pytest.raises(feddyn.InputError, match=message):
            split_labels(labels, 5, **arguments)


def test_images_are_normalised_by_channel() -> None:
    x = torch.randint(0, 256, (5, 3, 4, 4), dtype=torch.uint8)
    out = Images((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))(x, torch.float64)
    for c, (mean, std) in enumerate(((0.5, 0.1), (0.4, 0.2), (0.3, 0.3))):
        assert torch.allclose(out[:, c], (x[:, c].double() / 255 - mean) / std)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_pixels_are_not_normalised_in_place(dtype: torch.dtype) -> None:
    """Pixels that come in the model's type are the caller's own, and are visited again."""
    bytes_ = torch.arange(48, dtype=torch.uint8).view(1, 3, 4, 4)
    x = bytes_.to(dtype)
    transform = Images((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))
    for _ in range(2):
        for kind in (torch.float32, torch.float64):
            assert torch.allclose(transform(x, kind), transform(bytes_, kind), rtol=0, atol=1e-6)
    assert torch.equal(x, bytes_.to(dtype))


def test_augmentation_flips_and_crops() -> None:
    """Every output is its input, flipped or not, moved by up to 4 pixels with zeros coming in; half are flipped, half
    are cropped, independently; and it is seeded."""
    count = 2000
    x = torch.randint(1, 256, (1, 3, 8, 8), dtype=torch.uint8).expand(count, -1, -1, -1)
    transform = Images((0.0,) * 3, (1.0,) * 3, augment=True)
    out = transform(x, torch.float32, torch.Generator().manual_seed(0))
    assert torch.equal(out, transform(x, torch.float32, torch.Generator().manual_seed(0)))
    assert torch.allclose(transform(x, torch.float32), x / 255)
    plain = x[0].float() / 255
    kinds, flipped, centered = [], [], []
    for flip in (False, True):
        padded = torch.nn.functional.pad(plain.flip(-1) if flip else plain, (4,) * 4)
        for dy, dx in product(range(9), range(9)):
            kinds.append(padded[:, dy : dy + 8, dx : dx + 8].flatten())
            flipped.append(flip)
            centered.append(dy == dx == 4)
    nearest = torch.cdist(out.flatten(1), torch.stack(kinds)).min(1)
    assert float(nearest.values.max()) < 0.02  # cdist is not exact; the next nearest is 0.5 away
    seen = torch.bincount(nearest.indices, minlength=len(kinds))
    assert float(seen[torch.tensor(flipped)].sum()) / count == pytest.approx(0.5, abs=0.05)
    assert float(seen[torch.tensor(centered)].sum()) / count == pytest.approx(0.5 + 0.5 / 81, abs=0.05)
    assert int((seen > 0).sum()) > 150  # of 2 x 81


def test_tokens_become_whole_numbers() -> None:
    assert Tokens()(torch.tensor([[3]], dtype=torch.uint8), torch.float32).dtype == torch.int64


def test_bytes_train_as_their_normalised_floats() -> None:
    """A run on bytes with a transform gives the bits of a run on the floats."""
    x = torch.randint(0, 256, (40, 1, 3, 3), dtype=torch.uint8)
    y, owner = torch.randint(0, 2, (40,)), torch.arange(40) % 4
    transform = Images((0.5,), (0.25,))
    floats = transform(x, torch.float32)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(9, 2))
    solver = feddyn.SGD(0.1, epochs=2, batch_size=3)
    runs = [
        feddyn.simulate(model, population, feddyn.FedDyn(0.1), solver, participation=2, rounds=3)
        for population in (
            feddyn.Population.from_arrays(x, y, owner, transform=transform),
            feddyn.Population.from_arrays(floats, y, owner),
        )
    ]
    assert runs[0].history == runs[1].history
    assert torch.equal(runs[0].models["all"], runs[1].models["all"])


def test_a_population_of_torch_datasets() -> None:
    from torch.utils.data import TensorDataset

    sets = [TensorDataset(torch.randn(n, 4), torch.randint(0, 3, (n,))) for n in (5, 2, 9)]
    population = feddyn.Population.from_datasets(sets, test=sets[0])
    assert population.sizes == [5, 2, 9]
    assert torch.equal(population.samples(1)[0], sets[1].tensors[0])
    with pytest.raises(feddyn.InputError, match="device 1 has no samples"):
        feddyn.Population.from_datasets([sets[0], TensorDataset(torch.zeros(0, 4), torch.zeros(0).long())])
    with pytest.raises(feddyn.InputError, match="device 1 has samples of shape"):
        feddyn.Population.from_datasets([sets[0], TensorDataset(torch.zeros(2, 5), torch.zeros(2).long())])
    with pytest.raises(feddyn.InputError, match="pairs of tensors"):
        feddyn.Population.from_datasets([TensorDataset(torch.zeros(2, 5))])


def test_a_population_of_index_lists() -> None:
    x, y = torch.arange(6.0)[:, None], torch.zeros(6).long()
    population = feddyn.Population.from_parts(x, y, [[5, 0], [1]])
    assert population.samples(0)[0].flatten().tolist() == [5, 0]
    with pytest.raises(feddyn.InputError, match="device 1 has no samples"):
        feddyn.Population.from_parts(x, y, [[1], []])
    with pytest.raises(feddyn.InputError, match="not among the 6"):
        feddyn.Population.from_parts(x, y, [[1], [6]])
