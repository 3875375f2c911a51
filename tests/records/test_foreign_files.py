"""Files that are not ours stay as they are, and a record that somebody changed is not taken for the run's own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import feddyn
from feddyn.cli import cli
from feddyn.runs.checkpoint import Checkpoints
from tests.engine.cases import cases

SETTING = """
rounds = 12
participation = 0.5
[population]
source = "synthetic"
kind = "type1"
devices = 6
samples = 20
[model]
name = "linear"
[algorithm]
name = "feddyn"
alpha = 0.1
[solver]
lr = 0.1
epochs = 1
"""


def arguments(rounds: int = 8) -> dict[str, Any]:
    return {
        **cases()["feddyn one by one"],
        "rounds": rounds,
        "workers": 1,
        "checkpoint": feddyn.CheckpointEvery(rounds=2),
    }


def interrupted(out: Path) -> Path:
    """A record of four rounds, with two checkpoints."""
    plan = feddyn.Plan(**{name: value for name, value in arguments().items() if name not in ("workers", "checkpoint")})
    simulation = feddyn.Simulation(plan, out, workers=1, checkpoint=feddyn.CheckpointEvery(rounds=2))
    lines = iter(simulation)
    for _ in range(4):
        next(lines)
    lines.close()
    return out


def command(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    return done.exit_code, done.output + str(done.exception or "")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "name",
    ["checkpoint", "rounds.jsonl", "timings.jsonl", "lock", "summary.json", "models.safetensors", ".summary.json.part"],
)
def test_a_link_in_a_record_is_refused_and_what_it_points_to_stays(name: str, tmp_path: Path) -> None:
    """Resuming truncates, appends, replaces and removes, which must not happen to what a link leads to."""
    out, elsewhere = interrupted(tmp_path / "out"), tmp_path / "elsewhere"
    if (out / name).is_dir():
        shutil.move(out / name, elsewhere)
        (elsewhere / "thesis.txt").write_text("three years of work")
        target = elsewhere
    else:
        elsewhere.mkdir()
        target = elsewhere / "thesis.txt"
        shutil.move(out / name, target) if (out / name).exists() else target.write_text("three years of work")
    (out / name).symlink_to(target)
    before = snapshot(elsewhere)
    with pytest.raises(feddyn.InputError, match="is a symbolic link"):
        feddyn.simulate(**arguments(), out=out, resume=True)
    assert snapshot(elsewhere) == before


def test_a_link_that_waits_in_an_empty_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "thesis.txt").write_text("three years of work")
    (tmp_path / "out" / "lock").symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(feddyn.InputError, match="is a symbolic link"):
        feddyn.simulate(**arguments(), out=tmp_path / "out")


def test_a_record_may_be_reached_through_a_link(tmp_path: Path) -> None:
    """Whoever names a link means what it leads to."""
    out = interrupted(tmp_path / "out")
    (tmp_path / "here").symlink_to(out)
    assert feddyn.simulate(**arguments(), out=tmp_path / "here", resume=True).status == "finished"


def test_only_files_of_our_own_naming_are_removed(tmp_path: Path) -> None:
    out = interrupted(tmp_path / "out")
    others = ["notes.txt", "0001.json", "x000002.json", "000002.json.bak", ".000002.json", "results.safetensors"]
    for name in others:
        (out / "checkpoint" / name).write_text("mine")
    assert feddyn.simulate(**arguments(), out=out, resume=True).status == "finished"
    there = {file.name: file for file in (out / "checkpoint").iterdir()}
    assert {name: there[name].read_text() for name in others} == dict.fromkeys(others, "mine")
    assert len({name[:6] for name in there if name not in others}) == 1  # of the last round


def test_the_latest_of_more_than_a_million_rounds_is_the_one_with_the_largest_number(tmp_path: Path) -> None:
    for name in ("999999.json", "1000000.json", "1000001.json"):
        (tmp_path / name).write_text("{}")
    newest = [file.name for file in Checkpoints(tmp_path, "key")._newest()]
    assert newest == ["1000001.json", "1000000.json", "999999.json"]


def test_reports_and_comparisons_do_not_write_through_links(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(SETTING)
    assert command("run", tmp_path / "my.toml", "--out", tmp_path / "r", "--workers", "1")[0] == 0
    precious = tmp_path / "precious.html"
    precious.write_text("mine")
    (tmp_path / "r" / "report").mkdir()
    (tmp_path / "r" / "report" / "index.html").symlink_to(precious)
    code, words = command("report", tmp_path / "r")
    assert code != 0
    assert "index.html is a symbolic link" in words
    (tmp_path / "r" / "report" / "index.html").unlink()
    (tmp_path / "r" / "report").rmdir()
    (tmp_path / "r" / "report").symlink_to(tmp_path)
    code, words = command("report", tmp_path / "r")
    assert code != 0
    assert "report is a symbolic link" in words
    (tmp_path / "r" / "report").unlink()
    (tmp_path / "r" / "table.md").unlink()
    (tmp_path / "r" / "table.md").symlink_to(precious)
    code, words = command("resume", tmp_path / "r")
    assert code != 0
    assert "table.md is a symbolic link" in words
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("strip", [False, True])
def test_a_finished_record_whose_setting_was_edited_is_not_complete(strip: bool, tmp_path: Path) -> None:
    """12 of 20 rounds are not all of them: the summary has the key of the setting that was run."""
    (tmp_path / "my.toml").write_text(SETTING)
    assert command("run", tmp_path / "my.toml", "--out", tmp_path / "r", "--workers", "1")[0] == 0
    assert "is complete" in command("resume", tmp_path / "r")[1]
    text = (tmp_path / "r" / "setting.toml").read_text().replace("rounds = 12", "rounds = 20")
    (tmp_path / "r" / "setting.toml").write_text(text.partition("\n")[2] if strip else text)
    code, words = command("resume", tmp_path / "r")
    assert code != 0
    assert "was changed after the run was begun" in words


def test_an_unfinished_record_whose_setting_was_edited_is_refused(tmp_path: Path) -> None:
    """One that crashed before its first checkpoint has no key but the one in its heading."""
    (tmp_path / "my.toml").write_text(SETTING)
    assert command("run", tmp_path / "my.toml", "--out", tmp_path / "r", "--workers", "1")[0] == 0
    (tmp_path / "r" / "summary.json").unlink()
    setting = tmp_path / "r" / "setting.toml"
    setting.write_text(setting.read_text().replace("alpha = 0.1", "alpha = 0.2"))
    assert "was changed after the run was begun" in command("resume", tmp_path / "r")[1]


def test_a_finished_record_that_lost_lines_is_damaged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    feddyn.simulate(**arguments(), out=out)
    lines = (out / "rounds.jsonl").read_bytes().splitlines(keepends=True)
    (out / "rounds.jsonl").write_bytes(b"".join(lines[:-3]))
    assert json.loads((out / "summary.json").read_bytes())["rounds"] == len(lines)
    with pytest.raises(feddyn.FeddynError, match="has 5 of 8 rounds"):
        feddyn.simulate(**arguments(), out=out, resume=True)
