"""Records come from elsewhere: whatever is wrong with one, a report says so, leaves it out and shows the others.

`python -m tests.reports.test_damage SEED COUNT` damages more of them.
"""

import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from feddyn.errors import InputError
from feddyn.paper.catalogue import experiments
from feddyn.records.reader import find
from feddyn.reports import records, report
from feddyn.reports.report import make
from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from tests.paper.tiny import setting

FILES = ("setting.toml", "rounds.jsonl", "timings.jsonl", "summary.json")


def write_record(directory: Path) -> None:
    """A small run with a target."""
    ((_, plan),) = plans(setting("feddyn") | {"rounds": 3, "target": {"metric": "loss", "value": 0.1, "stop": False}})
    for _ in Simulation(plan, directory, workers=1):
        pass


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record with nothing wrong."""
    directory = tmp_path_factory.mktemp("sound") / "sound"
    write_record(directory)
    return directory


@pytest.fixture
def pair(sound: Path, tmp_path: Path) -> Path:
    """A folder with a sound record and one to be damaged."""
    for name in ("sound", "damaged"):
        shutil.copytree(sound, tmp_path / "runs" / name)
    return tmp_path / "runs"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without figures, which take most of the time."""
    monkeypatch.setattr(report, "curves_over_rounds", lambda *_: [])


def in_line(change: Callable[[dict[str, Any]], Any], file: str = "rounds.jsonl") -> Callable[[Path], None]:
    """A change of the second line of a file."""

    def damage(record: Path) -> None:
        lines = (record / file).read_text().splitlines()
        line = json.loads(lines[1])
        change(line)
        lines[1] = json.dumps(line)
        (record / file).write_text("\n".join(lines) + "\n")

    return damage


def in_text(file: str, old: str, new: str) -> Callable[[Path], None]:
    """A change of some words of a file."""

    def damage(record: Path) -> None:
        text = (record / file).read_text()
        assert old in text
        (record / file).write_text(text.replace(old, new))

    return damage


def whole(file: str, text: str | bytes) -> Callable[[Path], None]:
    """Another file in the place of one."""
    data = text.encode() if isinstance(text, str) else text

    def damage(record: Path) -> None:
        (record / file).write_bytes(data)

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a count is missing": in_line(lambda line: line.pop("transmitted")),
    "a count is a text": in_line(lambda line: line.update(gradients="many")),
    "a count is beyond all": in_line(lambda line: line.update(bytes_up=10**40)),
    "a figure is missing": in_line(lambda line: line["models"]["all"].pop("loss")),
    "a figure is NaN": in_line(lambda line: line["models"]["all"].update(loss=float("nan"))),
    "a figure is infinite": in_line(lambda line: line["models"]["all"].update(objective=float("inf"))),
    "a figure is a list": in_line(lambda line: line["models"]["all"].update(accuracy=[1])),
    "a figure is huge": in_line(lambda line: line["models"]["all"].update(loss=10**400)),
    "the model is another": in_line(lambda line: line.update(models={"server": line["models"]["all"]})),
    "models is a list": in_line(lambda line: line.update(models=[1, 2])),
    "a norm is a text": in_line(lambda line: line["norms"].update(theta="long")),
    "a round is missing": in_line(lambda line: line.update(round=9)),
    "a line is a number": whole("rounds.jsonl", "3\n"),
    "a line is deep": whole("rounds.jsonl", "[" * 100_000 + "\n"),
    "a line is not UTF-8": whole("rounds.jsonl", b'{"round": "\xff"}\n'),
    "a timing without seconds": in_line(lambda line: line.pop("seconds"), "timings.jsonl"),
    "a timing with a text": in_line(lambda line: line.update(seconds="long"), "timings.jsonl"),
    "a timing is a list": whole("timings.jsonl", "[]\n"),
    "the summary is a list": whole("summary.json", "[]"),
    "the summary is deep": whole("summary.json", "[" * 100_000),
    "the summary is cut off": whole("summary.json", '{"status": "fin'),
    "the summary has no status": whole("summary.json", '{"message": ""}'),
    "the status is a number": whole("summary.json", '{"status": 3, "message": ""}'),
    "the setting is not TOML": whole("setting.toml", "rounds ="),
    "the setting is not UTF-8": whole("setting.toml", b"a = '\xff'"),
    "the setting has a deep list": whole("setting.toml", "a = " + "[" * 100_000),
    "the setting has a long number": whole("setting.toml", "a = " + "9" * 10_000),
    "the seed is a text": in_text("setting.toml", "seed = 0\nrounds", "seed = 'zero'\nrounds"),
    "the seed is infinite": in_text("setting.toml", "seed = 0\nrounds", "seed = inf\nrounds"),
    "the target is a number": whole("setting.toml", "target = 3"),
    "the target has no value": in_text("setting.toml", "value = 0.1", ""),
    "the target has a text as its value": in_text("setting.toml", "value = 0.1", "value = 'low'"),
    "the target has no model": in_text("setting.toml", 'model = "all"', ""),
    "the target's metric is not known": in_text("setting.toml", 'metric = "loss"', 'metric = "beauty"'),
    "the target's model was not evaluated": in_text("setting.toml", 'model = "all"', 'model = "server"'),
    "the algorithm is a text": whole("setting.toml", 'algorithm = "feddyn"'),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_record_is_left_out_and_named(pair: Path, damage: Callable[[Path], None]) -> None:
    damage(pair / "damaged")
    made = make([pair], pair / "report")
    (why,) = made.missing
    assert why.startswith(f"the record in {pair / 'damaged'} is damaged: ")
    assert len(why.splitlines()) == 1
    assert shown(made) == 1


def shown(made: report.Report) -> int:
    """How many runs the tables of all runs have, by their seeds."""
    mine = [table for table in made.tables if table.title.startswith("all runs")]
    return sum(len(row[table.columns.index("seeds")].split(", ")) for table in mine for row in table.rows)


def attempt(home: Path, dice: random.Random) -> None:
    """Change some bytes of one file of a record; the report shows its neighbour, and no error but ours comes up."""
    for name in ("sound", "damaged"):
        shutil.rmtree(home / name, ignore_errors=True)
        shutil.copytree(home.parent / "whole", home / name)
    file = home / "damaged" / dice.choice(FILES)
    data = bytearray(file.read_bytes())
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(data))
        match dice.randrange(4):
            case 0:
                data[at] = dice.randrange(256)
            case 1:
                data[at : at + dice.randrange(1, 30)] = b""
            case 2:
                data[at:at] = dice.choice([b"0", b"-", b"e9", b'"', b"[", b"}", b",", b"null", b"\n", b"NaN", b"1e999"])
            case _:
                other = dice.randrange(len(data))
                data[at:at] = data[other : other + dice.randrange(1, 30)]
        data = data or bytearray(b" ")
    file.write_bytes(data)
    try:
        made = make([home], home / "report")
        assert shown(made) == 2 - len(made.missing)
    except Exception as error:
        error.add_note(f"{file.name} was {bytes(data)!r}")
        raise


@pytest.mark.usefixtures("quick")
def test_a_hundred_random_damages(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path / "whole")
    for seed in range(100):
        attempt(tmp_path / "runs", random.Random(seed))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("text", ["{", "[]", '{"runs": 3}', '{"runs": [3]}', '{"runs": [{"label": 3}]}', "[" * 100_000])
def test_a_damaged_comparison_is_named_and_its_runs_are_shown(pair: Path, text: str) -> None:
    (pair / "comparison.json").write_text(text)
    made = make([pair], pair / "report")
    assert len(made.missing) == 1
    assert made.missing[0].startswith(f"{pair / 'comparison.json'} is damaged")
    assert shown(made) == 2


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("text", [b"", b"a,b\n1\n", b"a,b\n1,2,3\n", b"\xff", b'a,b\n"1,2\n'])
def test_a_damaged_table_is_named(pair: Path, text: bytes) -> None:
    """Of those that a search made, and of one that `feddyn reproduce` made."""
    (pair / "trials.jsonl").write_text("")
    (pair / "candidates.csv").write_bytes(text)
    (pair / "heterogeneity").mkdir()
    (pair / "heterogeneity" / "table.csv").write_text("split,classes\niid,9\n")
    made = make([pair], pair / "report")
    assert len(made.missing) == 1
    assert made.missing[0].startswith(f"the table {pair / 'candidates.csv'} is damaged: ")
    assert [table.rows for table in made.tables][1:] == [[["iid", "9"]]]


def test_without_a_sound_record_it_says_why(pair: Path) -> None:
    for name in ("sound", "damaged"):
        (pair / name / "summary.json").write_text("[]")
    with pytest.raises(InputError, match=r"there is no record of a run in .*sound is damaged: .* not a table"):
        make([pair], pair / "report")


def test_a_name_does_not_make_a_record_a_run_of_the_paper(sound: Path, tmp_path: Path) -> None:
    """Runs of the paper are found by their directories' names; what is in them must be such a run too."""
    experiment = experiments()["alpha"]
    place = tmp_path / experiment.jobs[0].directory(0)
    shutil.copytree(sound, place)
    found, _ = find([tmp_path])
    assert records.entries(experiment, found) == []
    assert len(make([tmp_path], tmp_path / "report").tables) == 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_record(Path(folder) / "whole")
        for seed in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
            attempt(Path(folder) / "runs", random.Random(seed))
