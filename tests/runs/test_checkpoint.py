"""Checkpoints that somebody altered and gave their hashes again: one sentence, and nothing of the run is touched."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import feddyn
from feddyn.runs.checkpoint import _digest
from tests.engine.cases import cases

Body = dict[str, Any]
NEWEST = "000005.json"


def arguments() -> dict[str, Any]:
    return {**cases()["feddyn one by one"], "rounds": 8}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted after its fifth round."""
    out = tmp_path_factory.mktemp("begun") / "out"
    simulation = feddyn.Simulation(
        feddyn.Plan(**arguments()), out, workers=1, checkpoint=feddyn.CheckpointEvery(rounds=2)
    )
    for line in simulation:
        if line["round"] == 5:
            break
    return out


def alter(directory: Path, change: Callable[[Body], None]) -> None:
    """Change what the newest checkpoint says, and make its hash right again."""
    file = directory / "checkpoint" / NEWEST
    outer = json.loads(file.read_text())
    change(outer["checkpoint"])
    outer["sha256"] = _digest(outer["checkpoint"])
    file.write_text(json.dumps(outer))


def alter_vectors(part: str, change: Callable[[dict[str, torch.Tensor]], None], directory: Path) -> None:
    """Change the vectors of the newest checkpoint's server, or of its last devices, and make all hashes right again."""

    def rehash(body: Body) -> None:
        entry = body["server"] if part == "server" else body["devices"][-1]
        file = directory / "checkpoint" / entry["file"]
        vectors = load_file(file)
        change(vectors)
        save_file(vectors, file)
        entry["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()

    alter(directory, rehash)


BODIES: list[tuple[str, Callable[[Body], Any]]] = [
    ("fewer totals", lambda body: body["totals"].pop()),
    ("more totals", lambda body: body["totals"].append(1)),
    ("a total that is a text", lambda body: body["totals"].__setitem__(0, "many")),
    ("a total below 0", lambda body: body["totals"].__setitem__(0, -1)),
    ("totals that are a number", lambda body: body.update(totals=3)),
    ("no totals", lambda body: body.pop("totals")),
    ("recorded below 0", lambda body: body.update(recorded=-1)),
    ("recorded in the middle of a line", lambda body: body.update(recorded=body["recorded"] - 3)),
    ("recorded a line early", lambda body: body.update(recorded=0)),
    ("recorded beyond the end", lambda body: body.update(recorded=10**9)),
    ("recorded a text", lambda body: body.update(recorded="all")),
    ("a round beyond the last", lambda body: body.update(round=10**6)),
    ("another round", lambda body: body.update(round=2)),
    ("a round that is none", lambda body: body.update(round=2.5)),
    ("no round", lambda body: body.pop("round")),
    ("no key", lambda body: body.pop("key")),
    ("another key", lambda body: body.update(key="0" * 16)),
    ("no server", lambda body: body.pop("server")),
    ("a server that is a list", lambda body: body.update(server=[])),
    ("a server without a file", lambda body: body["server"].pop("file")),
    ("a server elsewhere", lambda body: body["server"].update(file="../rounds.jsonl")),
    ("devices that are none", lambda body: body.update(devices=None)),
    ("a segment that is a text", lambda body: body["devices"].append("x")),
    ("a segment without a count", lambda body: body["devices"][-1].pop("devices")),
    ("the server's vectors as devices", lambda body: body["devices"].append({**body["server"], "devices": 1})),
    ("a segment's as the server's", lambda body: body.update(server=body["devices"][-1])),
]
VECTORS: list[tuple[str, str, Callable[[dict[str, torch.Tensor]], Any]]] = [
    ("server", "no model", lambda vectors: vectors.pop("server.theta")),
    ("server", "a longer model", lambda vectors: vectors.update({"server.theta": torch.zeros(999)})),
    ("server", "another type", lambda vectors: vectors.update(active=vectors["active"].half())),
    ("server", "a mean of another shape", lambda vectors: vectors.update({"all": vectors["all"][:1].clone()})),
    ("server", "norms of another shape", lambda vectors: vectors.update(norms=torch.zeros(7, dtype=torch.float64))),
    ("devices", "no devices", lambda vectors: vectors.pop("devices")),
    ("devices", "no rows", lambda vectors: vectors.pop("rows")),
    ("devices", "a device too many", lambda vectors: vectors.update(devices=vectors["devices"] + 1000)),
    ("devices", "a device below 0", lambda vectors: vectors.update(devices=vectors["devices"] - 1000)),
    ("devices", "one device twice", lambda vectors: vectors.update(devices=torch.zeros_like(vectors["devices"]))),
    ("devices", "devices with a point", lambda vectors: vectors.update(devices=vectors["devices"].double())),
    ("devices", "wider states", lambda vectors: vectors.update(rows=torch.cat([vectors["rows"]] * 2, 1))),
    ("devices", "more states", lambda vectors: vectors.update(rows=torch.cat([vectors["rows"]] * 2))),
    ("devices", "states of another type", lambda vectors: vectors.update(rows=vectors["rows"].half())),
]


def refused(directory: Path) -> None:
    before = {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}
    with pytest.raises(feddyn.FeddynError) as error:
        feddyn.simulate(**arguments(), out=directory, resume=True, workers=1)
    assert len(str(error.value).splitlines()) == 1
    assert "checkpoint" in str(error.value)
    assert all(file.name == "timings.jsonl" or file.read_bytes() == data for file, data in before.items())


@pytest.mark.parametrize(("what", "change"), BODIES, ids=[what for what, _ in BODIES])
def test_words_that_were_altered(begun: Path, tmp_path: Path, what: str, change: Callable[[Body], Any]) -> None:
    directory = Path(shutil.copytree(begun, tmp_path / "out"))
    alter(directory, change)
    refused(directory)


@pytest.mark.parametrize(("part", "what", "change"), VECTORS, ids=[what for _, what, _ in VECTORS])
def test_vectors_that_were_altered(
    begun: Path, tmp_path: Path, part: str, what: str, change: Callable[[dict[str, torch.Tensor]], Any]
) -> None:
    directory = Path(shutil.copytree(begun, tmp_path / "out"))
    alter_vectors(part, change, directory)
    refused(directory)


def test_what_is_altered_back_goes_on(begun: Path, tmp_path: Path) -> None:
    """The tests' own hashes are right: with nothing altered the run goes on to its end."""
    directory = Path(shutil.copytree(begun, tmp_path / "out"))
    alter(directory, lambda body: None)
    alter_vectors("devices", lambda vectors: None, directory)
    assert feddyn.simulate(**arguments(), out=directory, resume=True, workers=1).status == "finished"


@pytest.mark.parametrize("damage", [b"what is this?\n", b"{}\n", b"[" * 100_000 + b"\n"])
def test_a_line_of_the_record_that_is_damaged(begun: Path, tmp_path: Path, damage: bytes) -> None:
    """Of the same length as before, so that only its content tells."""
    directory = Path(shutil.copytree(begun, tmp_path / "out"))
    file = directory / "rounds.jsonl"
    first, *rest = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(damage + b"".join(rest))
    alter(directory, lambda body: body.update(recorded=body["recorded"] - len(first) + len(damage)))
    with pytest.raises(feddyn.InputError, match=r"rounds.jsonl is damaged \(line 1: "):
        feddyn.simulate(**arguments(), out=directory, resume=True, workers=1)
