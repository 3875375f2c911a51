"""`feddyn evaluate` and `feddyn export`: what they say is what was recorded, and what they write can be used."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import feddyn
from feddyn.data.columns import Columns
from feddyn.data.transforms import Images
from feddyn.errors import FeddynError, InputError
from feddyn.metrics import worst_tenth
from feddyn.runs.export import export
from feddyn.settings.documents import read
from feddyn.settings.starter import write
from tests.cli.conftest import Say
from tests.cli.test_run import real
from tests.settings.test_loading import MNIST, SETTING, recorded


@pytest.fixture
def folder(records: Path) -> Path:
    return records / "0.1-0"


def cells(out: str, first: str) -> list[str]:
    """The cells of the first row that begins with a word."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("|")]
    return next(row for row in rows if row[0] == first)


def test_the_runs_own_data_gives_the_recorded_figures(folder: Path, say: Say, tmp_path: Path) -> None:
    """Of the server's model also device by device, as devices.json has them."""
    run = feddyn.load(folder)
    code, out, _ = say("evaluate", folder, "--model", "server", "--csv", tmp_path / "devices.csv")
    assert code == 0
    assert cells(out, "accuracy")[1] == f"{run.history[-1]['models']['server']['accuracy']:.4f}"
    with (tmp_path / "devices.csv").open(newline="") as stream:
        listed = list(csv.DictReader(stream))
    assert [float(row["accuracy"]) for row in listed] == run.on_devices["accuracy"]
    assert [int(row["samples"]) for row in listed] == run.on_devices["samples"]
    spread = next(line for line in out.splitlines() if "worst 10%" in line)
    assert [cell.strip() for cell in spread.split("|")[1:4]] == ["figure", "worst 10%", "worst"]


def test_other_data_from_an_npz_file(folder: Path, say: Say, tmp_path: Path) -> None:
    """The figures of ten devices of eight samples, beside those of plain PyTorch."""
    run, other = feddyn.load(folder), feddyn.synthetic("type2", devices=10, samples=8, seed=5)
    device = np.array([f"clinic {k}" for k in range(10) for _ in range(8)])
    np.savez(tmp_path / "new.npz", x=other.x.numpy(), y=other.y.numpy(), device=device)
    code, out, _ = say("evaluate", folder, "--data", tmp_path / "new.npz")
    assert code == 0
    right = (run.model()(other.x.double()).argmax(1) == other.y).double()
    assert cells(out, "accuracy")[1] == f"{right.mean():.4f}"
    single = right.view(10, 8).mean(1).tolist()
    row = next(line for line in out.splitlines() if line.startswith("| accuracy") and line.count("|") > 4)
    assert row.split("|")[2].strip() == f"{worst_tenth(single, 'higher'):.4f}" == f"{min(single):.4f}"
    assert "clinic 9" in out
    np.savez(tmp_path / "alone.npz", x=other.x.numpy(), y=other.y.numpy())
    assert "own samples" not in say("evaluate", folder, "--data", tmp_path / "alone.npz")[1]


def test_models_of_a_run_that_diverged_are_called_so(say: Say, tmp_path: Path) -> None:
    with pytest.raises(FeddynError, match="diverged in round 1"):
        recorded(SETTING | {"solver": {"lr": 1e200, "epochs": 2, "batch_size": 10}}, tmp_path / "r")
    for words in (["evaluate", tmp_path / "r"], ["export", tmp_path / "r", "--to", tmp_path / "m.pt"]):
        code, _, err = say(*words)
        assert code == 0
        assert err == f"the run diverged: its models are those that it began with (feddyn doctor {tmp_path / 'r'})\n"


@real
def test_the_test_set_of_a_data_set(tmp_path: Path, say: Say) -> None:
    run = recorded(MNIST | {"rounds": 1}, tmp_path / "r")
    _, out, _ = say("evaluate", tmp_path / "r", "--data", "mnist")
    assert cells(out, "accuracy")[1] == f"{run.history[-1]['models']['all']['accuracy']:.4f}"


def test_data_that_cannot_be_used_is_one_sentence(folder: Path, say: Say, tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    np.savez(tmp_path / "half.npz", x=np.zeros((2, 30)))
    (tmp_path / "a.xls").write_text("")
    for named, words in (
        ("mnits", "did you mean 'mnist'"),
        (tmp_path / "bad.npz", "is damaged, is no npz file or has arrays of objects"),
        (tmp_path / "half.npz", "has no array 'y'; it has x"),
        (tmp_path / "a.xls", "give an npz file"),
    ):
        code, _, err = say("evaluate", folder, "--data", named)
        assert code == 2
        assert words in err


@pytest.mark.parametrize("name", ["m.pt", "m.safetensors"])
def test_an_exported_state_dict_is_the_model(folder: Path, say: Say, tmp_path: Path, name: str) -> None:
    code, out, _ = say("export", folder, "--to", tmp_path / name, "--model", "server")
    assert code == 0
    assert out == f"the server's model: {tmp_path / name}\n"
    file = tmp_path / name
    state = torch.load(file, weights_only=True) if file.suffix == ".pt" else load_file(file)
    net = nn.Sequential(nn.Flatten(), nn.Linear(30, 5)).double()
    net.load_state_dict(state)
    x = torch.ones(2, 30, dtype=torch.float64)
    assert torch.equal(net(x), feddyn.load(folder).predict(x, "server"))
    assert "nothing is overwritten" in say("export", folder, "--to", file)[2]
    assert "models are written as .pt, .safetensors, .onnx" in say("export", folder, "--to", tmp_path / "m.pth")[2]


class Odd(nn.Linear):
    """A network whose computation depends on its input."""

    def forward(self, x: Any) -> Any:
        return x if float(x.sum()) > 0 else super().forward(x)


def test_onnx_takes_raw_samples(tmp_path: Path) -> None:
    """Bytes in, scores out, by another implementation: that of the onnx package; with another number of samples."""
    pytest.importorskip("onnxscript", reason="there is no ONNX: pip install 'feddyn[onnx]'")
    reference = pytest.importorskip("onnx.reference")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4)).eval()
    images, inputs = Images((0.5,), (0.25,)), {"sample": {"shape": [1, 6, 6], "dtype": "uint8"}}
    file = export(net, images, inputs, tmp_path / "m.onnx")
    x = torch.randint(0, 256, (5, 1, 6, 6), dtype=torch.uint8)
    (out,) = reference.ReferenceEvaluator(str(file)).run(None, {"samples": x.numpy()})
    np.testing.assert_allclose(out, net((x / 255 - 0.5) / 0.25).detach().numpy(), atol=1e-5)
    (about,) = pytest.importorskip("onnx").load(file).metadata_props
    assert (about.key, json.loads(about.value)) == ("feddyn.inputs", inputs)
    with pytest.raises(FeddynError, match="PyTorch cannot export this model to ONNX"):
        export(Odd(3, 3), None, {"sample": {"shape": [3], "dtype": "float32"}}, tmp_path / "odd.onnx")
    assert not (tmp_path / "odd.onnx").exists()


def test_what_onnx_cannot_have_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feddyn.runs.export.find_spec", lambda name: True)
    for inputs, words in (({"sample": {"form": "{a: (3,)}"}}, r"are \{a: \(3,\)\}"), ({}, "are not described")):
        with pytest.raises(InputError, match=f"one array of samples; those of this run {words}"):
            export(Odd(3, 3), None, inputs, tmp_path / "m.onnx")
    monkeypatch.setattr("feddyn.runs.export.find_spec", lambda name: None)
    with pytest.raises(FeddynError, match=r"pip install 'feddyn\[onnx\]'"):
        export(Odd(3, 3), None, {}, tmp_path / "m.onnx")


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table of one's own, with a model and a metric of one's own."""
    home = tmp_path_factory.mktemp("clinic")
    write(home)
    recorded(read(home / "setting.toml") | {"rounds": 2}, home / "run", home)
    return home


def rows(clinic: Path, columns: slice) -> str:
    return "".join(",".join(line.split(",")[columns]) + "\n" for line in (clinic / "data.csv").read_text().splitlines())


def test_a_table_is_encoded_as_the_runs_own_was(clinic: Path, say: Say) -> None:
    """All rows of the run's table again: with the hospitals, without them, and without the labels."""
    run = feddyn.load(clinic / "run")
    (clinic / "all.csv").write_text(rows(clinic, slice(0, None)))
    (clinic / "nobodys.csv").write_text(rows(clinic, slice(1, None)))
    (clinic / "unlabelled.csv").write_text(rows(clinic, slice(1, -1)))
    outputs = run.predict(clinic / "unlabelled.csv")
    ill = torch.tensor([line.endswith("yes") for line in (clinic / "data.csv").read_text().splitlines()[1:]])
    assert run.setting["population"]["classes"] == ["no", "yes"]
    right = (outputs.argmax(1) == ill.long()).double()
    for name in ("all.csv", "nobodys.csv"):
        code, out, _ = say("evaluate", clinic / "run", "--data", clinic / name)
        assert code == 0
        assert cells(out, "accuracy")[1] == f"{right.mean():.4f}"
        assert ("hill" in out) == (name == "all.csv")
        f1 = 2 * (outputs.argmax(1) * ill).sum() / (outputs.argmax(1).sum() + ill.sum())
        assert cells(out, "f1")[1] == f"{f1:.4f}"
    (clinic / "odd.csv").write_text("age,sex\n3,f\n")
    assert say("evaluate", clinic / "run", "--data", clinic / "odd.csv")[0] == 2


def test_columns_are_encoded_where_no_file_is_given(clinic: Path) -> None:
    """Of an array nobody could tell whether it is encoded, and its figures would be wrong in silence."""
    run = feddyn.load(clinic / "run")
    columns = Columns(clinic / "data.csv")
    given = {name: columns[name] if at % 2 else columns[name].tolist() for at, name in enumerate(columns.names)}
    (clinic / "unlabelled.csv").write_text(rows(clinic, slice(1, -1)))
    assert torch.equal(run.predict(given), run.predict(clinic / "unlabelled.csv"))
    with pytest.raises(InputError, match="whose columns were encoded: give the path of another one, or its columns by"):
        run.predict(np.zeros((3, 4)))
    with pytest.raises(InputError, match="what is given has no column 'age'"):
        run.predict({"pressure": [1, 2]})
    with pytest.raises(InputError, match="the column 'sex' is a single value: give one a row"):
        run.predict({**given, "sex": "f"})
    assert torch.equal(run.predict({**given, "notes": [[1], [2, 3]]}), run.predict(given))
    pandas = pytest.importorskip("pandas")
    assert torch.equal(run.predict(pandas.read_csv(clinic / "data.csv")), run.predict(given))
    inputs = json.loads((clinic / "run" / "inputs.json").read_text())
    assert inputs["columns"]["encoding"] == run.setting["population"]["encoding"]


def test_only_runs_on_tables_take_paths(folder: Path) -> None:
    with pytest.raises(InputError, match="the run was not made on a table"):
        feddyn.load(folder).predict("x.csv")
