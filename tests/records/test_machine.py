"""What a record says of where and when its run was computed."""

import os
import re
import shutil
from pathlib import Path

import pytest
import torch

import feddyn
from feddyn.data.stored import Stored
from feddyn.errors import InputError
from feddyn.records.machine import processor
from feddyn.records.reader import read


def test_a_run_keeps_when_and_where_it_was_computed(
    tmp_path: Path, unbalanced: Stored, logistic: torch.nn.Module
) -> None:
    """And one that goes on adds to it; the rounds of both sessions have their seconds."""
    for rounds in (2, 3):
        feddyn.simulate(
            logistic, unbalanced, feddyn.FedAvg(), feddyn.SGD(lr=0.1, epochs=1, batch_size=5),
            participation=2, rounds=rounds, out=tmp_path / "run", resume=True, workers=1,
        )  # fmt: skip
    record = read(tmp_path / "run")
    assert len(record.sessions) == 2
    for session in record.sessions:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+[+-]\d{4}", session["at"])
        assert session["torch"] == torch.__version__
        assert session["cores"] == str(os.cpu_count())
        assert session["processor"]
    assert len(record.spent) == 3
    assert sum(record.spent.values()) == pytest.approx(record.seconds)


def test_an_older_record_says_less_and_is_read(tmp_path: Path) -> None:
    """The first ones had seconds alone, those after them no processor."""
    some = next((Path(__file__).parents[2] / "docs" / "results" / "records").iterdir())
    shutil.copytree(some, tmp_path / "run")
    timings = tmp_path / "run" / "timings.jsonl"
    timings.write_text('{"round": 1, "seconds": 2.5}\n')
    assert read(tmp_path / "run").sessions == []
    timings.write_text('{"started": "2026-11-16T20:00:00+0000", "machine": "Linux", "torch": "2.13.0"}\n')
    assert read(tmp_path / "run").sessions == [
        {"at": "2026-11-16T20:00:00+0000", "machine": "Linux", "torch": "2.13.0"}
    ]
    timings.write_text('{"started": 3}\n')
    with pytest.raises(InputError, match="started is 3, not a text"):
        read(tmp_path / "run").sessions  # noqa: B018


def test_the_processor_is_the_one_that_linux_lists(tmp_path: Path) -> None:
    listing = tmp_path / "cpuinfo"
    listing.write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n\nprocessor\t: 1\nmodel name\t: Other\n")
    assert processor(listing) == "Some CPU @ 3 GHz"
    listing.write_text("processor\t: 0\nmodel name\t:\n")
    assert processor(listing) == processor(tmp_path / "nowhere")
