"""What a newcomer writes first, and the sentence that helps: each of these was met."""

import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import click
import numpy as np
import pytest
from safetensors.torch import load_file

from feddyn.cli import cli
from feddyn.cli.show import Place, fits, show
from feddyn.views.tables import Table
from tests.cli.test_run import COMPARISON, SINGLE, call


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (SINGLE, ["--rounds", "3"], "there is no option --rounds: to change the setting, write --set rounds=VALUE"),
        (SINGLE, ["--lr=0.1"], "--set solver.lr=VALUE"),
        (SINGLE, ["--batch-size", "5"], "--set solver.batch_size=VALUE"),
        (SINGLE, ["--otu", "x"], "No such option"),
        (SINGLE, ["--set", "lr=0.1"], "'solver.lr'?"),
        (SINGLE, ["--set", "alpha=0.1"], "no setting here has alpha; did you mean 'algorithm.alpha'?"),
        (SINGLE, ["--set", "solver.rounds=3"], "no method here has solver.rounds; did you mean 'rounds'?"),
        (SINGLE, ["--set", "algorithm.mu=0.1"], "known: algorithm.alpha, algorithm.name"),
        (SINGLE, ["--set", "roundss=10"], "no setting here has roundss; did you mean 'rounds'?"),
        (SINGLE + '[uplink]\nname = "topk"\nfraction = 2.0', [], "feddyn: uplink.fraction is a part of all"),
        (SINGLE + '[downlink]\nname = "quantized"\nbits = 3', [], "feddyn: downlink.bits must be 8, 4, 2 or 1"),
        (
            SINGLE + '[uplink]\nname = "topk"\nfraction = 0.1\nvalues = { name = "quantized", bits = 3 }',
            [],
            "feddyn: uplink.values.bits must be 8, 4, 2 or 1",
        ),
        (SINGLE, ["--set", "solver.lrr=1"], "did you mean 'solver.lr'?"),
        (
            SINGLE + '[target]\nmetric = "accuracy"\nvalue = 95',
            [],
            "value must be from 0 to 1, as accuracies are, not 95: write 0.95 for 95%",
        ),
        (
            SINGLE + '[target]\nmetric = "accuracy"\nvalue = -1',
            [],
            "value must be from 0 to 1, as accuracies are, not -1",
        ),
    ],
)
def test_the_sentence_points_at_what_was_meant(
    text: str, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(text)
    assert call("run", "my.toml", *words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("population.samples=0", "feddyn: synthetic problem: samples must be"),
        ("population.kind=typ2", "feddyn: population.kind must be"),
        ("rounds=0", "feddyn: rounds must be"),
        ("solver.weight_decay=-1.0", "feddyn: SGD: weight_decay must be"),
        ("algorithm.mu=-1.0", "feddyn: FedProx: FedProx: mu must be"),
    ],
)
def test_what_methods_share_is_blamed_on_none_of_them(
    words: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(COMPARISON)
    assert call("run", "my.toml", "--set", words, monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.startswith(sentence)


@pytest.mark.parametrize(
    ("method", "there", "not_there"),
    [
        ('"fedavg"', "a smaller lr", "alpha"),
        ('"fedprox"\nmu = 0.1', "lr * mu stays", "alpha"),
        ('"feddyn"\nalpha = 0.1', "a larger alpha", "mu"),
        ('"distributed-sgd"', "a smaller lr, or without one", "clip"),
    ],
)
def test_who_diverges_gets_advice_of_its_own(
    method: str, there: str, not_there: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(SINGLE.split("[algorithm]")[0] + f"[algorithm]\nname = {method}\n")
    assert call("run", "my.toml", "--set", "solver.lr=1e30", "--out", "x", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err.split("what usually helps")[1]
    assert there in said
    assert not_there not in said


def test_a_folder_says_what_is_in_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out", "x", monkeypatch=monkeypatch) == 0
    assert call("run", "my.toml", "--out", "x", monkeypatch=monkeypatch) == 2
    assert (
        "the output directory x has the record of a run that has ended (finished): choose another"
        in capsys.readouterr().err
    )
    summary = Path("x/summary.json")
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "status": "interrupted"}))
    assert call("run", "my.toml", "--out", "x", monkeypatch=monkeypatch) == 2
    assert "has the record of a run already: go on with it (feddyn resume" in capsys.readouterr().err


def test_the_folder_of_a_settings_file_is_no_record(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the one that `feddyn init` makes, in which the first hour is spent."""
    assert call("init", "clinic", monkeypatch=monkeypatch) == 0
    before = sorted(file.name for file in Path("clinic").iterdir())
    for words in (["show"], ["doctor"], ["evaluate"], ["export", "--to", "m.pt"], ["resume"]):
        capsys.readouterr()
        assert call(words[0], "clinic", *words[1:], monkeypatch=monkeypatch) == 2
        assert "clinic/setting.toml is a settings file that was not run here: feddyn run" in capsys.readouterr().err
    assert call("run", "clinic/setting.toml", "--out", "clinic", monkeypatch=monkeypatch) == 2
    assert "clinic is not empty" in capsys.readouterr().err
    assert sorted(file.name for file in Path("clinic").iterdir()) == before
    assert call("run", "clinic/setting.toml", "--out", "clinic/runs/one", monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    assert call("compare", "clinic", monkeypatch=monkeypatch) == 0
    assert "left out" not in capsys.readouterr().err
    assert call("resume", "nothing", monkeypatch=monkeypatch) == 2
    assert "there is no folder nothing" in capsys.readouterr().err


def test_data_that_do_not_fit_a_trained_model_are_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out", "out", monkeypatch=monkeypatch) == 0
    (weights,) = [v for v in load_file("out/state_dict.safetensors").values() if v.dim() == 2]
    classes, features = weights.shape
    x = np.arange(5 * features).reshape(5, features)
    for y, kind in ((np.zeros(5, dtype=int), np.int64), (np.arange(5) % classes, np.uint8)):
        np.savez("whole.npz", x=x.astype(kind), y=y)
        assert call("evaluate", "out", "--data", "whole.npz", monkeypatch=monkeypatch) == 0
    for bad in ({"x": x[:, 1:], "y": y}, {"x": x, "y": y + classes}, {"x": x, "y": y[:3]}):
        np.savez("bad.npz", **bad)
        capsys.readouterr()
        assert call("evaluate", "out", "--data", "bad.npz", monkeypatch=monkeypatch) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("form", ["pt", "safetensors"])
def test_a_model_that_cannot_be_written_leaves_nothing(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out", "out", monkeypatch=monkeypatch) == 0
    Path("to").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.rename", Mock(side_effect=OSError(28, "No space left on device")))
        assert call("export", "out", "--to", f"to/m.{form}", monkeypatch=monkeypatch) == 2
    assert f"to/m.{form} cannot be written: No space left on device" in capsys.readouterr().err
    assert list(Path("to").iterdir()) == []
    assert call("export", "out", "--to", f"to/m.{form}", monkeypatch=monkeypatch) == 0


def test_tables_break_no_word_where_there_is_room(capsys: pytest.CaptureFixture[str]) -> None:
    """So many columns that the table has to fold the one with many words: figures and heads stay whole."""
    columns = ["models transmitted", "accuracy", "0.9763 (0.9701 to 0.9822)", *map(str, range(10))]
    rows = [
        [
            "mnist-dirichlet0.3-10",
            "0.97631",
            "a long story of many words that can be folded anywhere " * 3,
            *"0123456789",
        ]
    ]
    table = Table("title", columns, rows)
    assert fits(table)
    show(table)
    text = capsys.readouterr().out
    assert all(len(line) <= 160 for line in text.splitlines())
    for word in ("mnist-dirichlet0.3-10", "0.97631", "transmitted", "accuracy", "(0.9701"):
        assert word in text
    wide = Table("title", [f"a-very-long-column-{n}" for n in range(20)], [["0.123456"] * 20])
    assert not fits(wide)
    show(wide)


def test_no_command_is_cut_off_in_the_help() -> None:
    for group in (cli, *(command for command in cli.commands.values() if isinstance(command, click.Group))):
        text = group.get_help(click.Context(group, info_name="feddyn"))
        assert "..." not in text.partition("Commands:")[2]


def test_every_path_may_begin_with_a_tilde() -> None:
    """Also those of --to=~/model.pt, which shells leave as they are."""

    def paths(command: click.Command) -> Iterator[click.Path]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from paths(found)
        yield from (parameter.type for parameter in command.params if isinstance(parameter.type, click.Path))

    found = list(paths(cli))
    assert len(found) > 25
    assert all(isinstance(path, Place) for path in found)


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HOME", str(Path("home").resolve()))
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out=~/x", monkeypatch=monkeypatch) == 0
    assert (Path("home") / "x" / "summary.json").exists()
    assert not Path("~").exists()
    assert call("run", "my.toml", "--out=~nobody-of-that-name/x", monkeypatch=monkeypatch) == 2
    assert "there is no home directory for ~nobody-of-that-name/x" in capsys.readouterr().err


TARGET = '[target]\nmetric = "objective"\nvalue = 100.0\n'
"""A target that the first round reaches."""


def test_more_rounds_of_a_run_that_ended_at_its_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing is said; and a run is called by its method when it goes on, too."""
    Path("my.toml").write_text(SINGLE + TARGET)
    assert call("run", "my.toml", "--out", "x", monkeypatch=monkeypatch) == 0
    hint = "it ended at its target in round 1: to go on, add --set target.stop=false"
    table = Path("x/table.md").read_text()
    assert "vs FedDyn" in table
    capsys.readouterr()
    assert call("resume", "x", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == f"x is complete: there is nothing to do ({hint})\n"
    assert call("resume", "x", "--set", "rounds=8", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out.endswith(f"FedDyn: no round was added; {hint}\n")
    assert Path("x/table.md").read_text() == table
    assert call("resume", "x", "--set", "target.stop=false", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "FedDyn: round 8 of 8, finished; target reached in round 1" in said
    assert "no round was added" not in said
    assert "vs FedDyn" in Path("x/table.md").read_text()
    assert call("show", "x", monkeypatch=monkeypatch) == 0
    assert "finished; target reached in round 1, 8 of 8 rounds" in capsys.readouterr().out


def test_a_run_that_ended_at_its_target_without_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not told to go on in a way that it cannot."""
    Path("my.toml").write_text(SINGLE + TARGET)
    assert call("run", "my.toml", "--out", "x", "--keep", "0", monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    assert call("resume", "x", monkeypatch=monkeypatch) == 0
    hint = "it ended in round 1, and there is no checkpoint to go on from: none larger than --keep"
    hint += " allows was kept, or it was removed"
    assert capsys.readouterr().out == f"x is complete: there is nothing to do ({hint})\n"
    before = Path("x/rounds.jsonl").read_bytes()
    assert call("resume", "x", "--set", "target.stop=false", monkeypatch=monkeypatch) == 2
    assert "run its setting.toml with more rounds in another directory" in capsys.readouterr().err
    assert Path("x/rounds.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", ["m.pt", "m.safetensors", "m.onnx"])
def test_a_model_goes_into_no_folder_that_is_not_there(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(SINGLE)
    assert call("run", "my.toml", "--out", "x", "--set", "rounds=1", monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    assert call("export", "x", "--to", f"nodir/{name}", monkeypatch=monkeypatch) == 2
    sentence = f"feddyn: nodir/{name} cannot be written: there is no folder nodir; make it, or choose another one\n"
    assert capsys.readouterr().err == sentence


def test_a_folder_is_no_setting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("here").mkdir()
    assert call("run", "here", monkeypatch=monkeypatch) == 2
    assert "the settings file here cannot be read: it is a folder; name a file in it" in capsys.readouterr().err
    Path("here/setting.toml").write_text(SINGLE)
    assert call("run", "here", monkeypatch=monkeypatch) == 2
    assert "it is a folder; did you mean here/setting.toml?" in capsys.readouterr().err
    assert call("show", "nope", monkeypatch=monkeypatch) == 2
    assert "there is no folder nope: name that of a run's record" in capsys.readouterr().err


def test_compression_is_shown_and_switched_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text(SINGLE + '[uplink]\nname = "topk"\nfraction = 0.5\nvalues = { name = "sign" }\n')
    assert call("run", "my.toml", "--out", "a", "--set", "rounds=1", monkeypatch=monkeypatch) == 0
    off = ("--set", "rounds=1", "--set", "uplink.name=none")
    assert call("run", "my.toml", "--out", "b", *off, monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    assert call("show", "a", monkeypatch=monkeypatch) == 0
    assert "topk, fraction 0.5 (quantized, bits 1)" in capsys.readouterr().out
    assert call("compare", "a", "b", "--out", "c.csv", monkeypatch=monkeypatch) == 0
    heading, *rows = Path("c.csv").read_text().splitlines()
    assert heading.startswith("uplink,seeds,ran,")
    assert rows[0].startswith('"topk, fraction 0.5 (quantized, bits 1)",1,1,')
    assert rows[1].startswith("-,1,1,")


@pytest.mark.parametrize("words", [(), ("data",), ("deploy",)])
def test_a_group_alone_shows_its_help(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard output, line by line; click's exit code for it is 2."""
    assert call(*words, monkeypatch=monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"Usage: {' '.join(['feddyn', *words])} [OPTIONS] COMMAND")
    assert "\nCommands:\n" in out
    assert err == ""
