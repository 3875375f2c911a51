"""Where a setting computes. There is no GPU here: what is said without one, and that the name gets where it belongs."""

from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

import feddyn
from feddyn.runs.plan import device_of
from feddyn.settings.building import plans
from feddyn.settings.documents import read
from feddyn.settings.torch_device import device, require_device
from tests.cli.test_run import SINGLE, call


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "mps", "CUDA", 1, "cuda:0 "])
def test_names_that_are_none(name: object) -> None:
    with pytest.raises(feddyn.InputError, match="device must be 'cpu', 'cuda' or 'cuda:N'"):
        device(name)


@pytest.mark.parametrize(("built", "words"), [(False, "is built for the CPU only"), (True, "finds none here")])
def test_without_one_the_sentence_says_why(built: bool, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.cuda.is_built", lambda: built)
    with pytest.raises(feddyn.InputError, match=f"device = 'cuda': there is no CUDA device, .* {words};"):
        require_device(device("cuda"))
    assert require_device(device("cpu")) == torch.device("cpu")


def test_a_number_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert require_device(device("cuda:1")) == torch.device("cuda:1")
    with pytest.raises(feddyn.InputError, match="device = 'cuda:2': there are 2 CUDA devices, numbered from 0"):
        require_device(device("cuda:2"))


@pytest.mark.parametrize("words", [["--device", "cuda"], ["--set", "device=cuda"]])
def test_on_the_command_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any data is read, and nothing is written."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out", "out", *words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.startswith("feddyn: device = 'cuda': there is no CUDA device")
    assert len(said.strip().splitlines()) == 1
    assert not Path("out").exists()


def test_the_cpu_is_not_mentioned_and_another_device_is() -> None:
    """`meta` stands for what is not here: a device that tensors can be on."""
    Path("my.toml").write_text(SINGLE)
    plain, named = (plans(read(Path("my.toml")), words)[0].plan for words in ([], ["device=cpu"]))
    assert plain.setting() == named.setting()
    assert "device" not in plain.setting()
    assert device_of(plain.model) == "cpu"
    assert device_of(torch.nn.Linear(2, 2, device="meta")) == "meta"


def test_ranks_on_a_gpu_each_have_the_same_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each computes on a device of its own: torchrun's second process on a machine on cuda:1."""
    model = Mock(parameters=lambda: iter([Mock(device=torch.device("cuda:1"))]))
    for current, name in ((1, "cuda"), (0, "cuda:1")):
        monkeypatch.setattr("torch.cuda.current_device", lambda current=current: current)
        assert device_of(model) == name


def test_the_model_goes_where_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    true = torch.nn.Module.to

    def to(self: torch.nn.Module, *words: object) -> torch.nn.Module:
        seen.extend(words)
        return self if torch.device("cuda:1") in words else true(self, *words)  # type: ignore[call-overload]

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr(torch.nn.Module, "to", to)
    Path("my.toml").write_text(SINGLE)
    plans(read(Path("my.toml")), ["device=cuda:1"])
    assert torch.device("cuda:1") in seen
