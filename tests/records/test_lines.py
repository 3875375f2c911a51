"""Files of JSON lines: what is cut off is left out, and what is damaged is refused with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from feddyn.errors import InputError
from feddyn.records.lines import append_lines, read_lines, read_rounds


def line(number: int, **changes: Any) -> dict[str, Any]:
    """A round as a record has it."""
    counts = {"round": number, "transmitted": number, "bytes_up": 8, "bytes_down": 8, "gradients": 10}
    figures = {"norms": {"theta": 1.5}, "models": {"all": {"loss": 0.5, "accuracy": 0.75}}}
    return {**counts, **figures, **changes}


def test_a_line_that_was_cut_off_is_left_out_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "rounds.jsonl"
    append_lines(file, [line(1), line(2)])
    with file.open("a") as stream:
        stream.write('{"rou')
    assert read_rounds(file) == [line(1), line(2)]
    append_lines(file, [line(3)])
    assert read_rounds(file) == [line(1), line(2), line(3)]
    assert read_rounds(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("what is this?", "line 2: Expecting value"),
        ("[]", r"line 2: the line is \[\], not a table"),
        ("[" * 100_000, "line 2: maximum recursion depth"),
        (json.dumps(line(2, transmitted="two")), "line 2: transmitted is 'two', not a count"),
        (json.dumps(line(2, round=True)), "line 2: round is True, not a count"),
        (json.dumps(line(2, gradients=-1)), "line 2: gradients is -1, not a count"),
        (json.dumps(line(2, bytes_up=10**30)), "line 2: bytes_up is 1.*0, not a count"),
        (json.dumps({k: v for k, v in line(2).items() if k != "gradients"}), "line 2: gradients is missing"),
        (json.dumps(line(2, norms={"theta": float("nan")})), "line 2: NaN is no number"),
        (json.dumps(line(2, norms={"theta": None})), "line 2: theta is None, not a number"),
        (json.dumps(line(2, norms=3)), "line 2: norms is 3, not a table"),
        (json.dumps(line(2, devices={"drift": "far"})), "line 2: drift is 'far', not a number"),
        (json.dumps(line(2)).replace("0.5", "1e999"), "line 2: loss is inf, not a number"),
        (json.dumps(line(2, models={"all": {"loss": 1e300}})), r"line 2: loss is 1e\+300, not a number up to 1e\+100"),
        (json.dumps(line(2, models={"all": {"accuracy": 0.5}})), "line 2: the model 'all' has no loss"),
        (json.dumps(line(2, models={"all": {"loss": 1.0, "accuracy": 1.5}})), "accuracy that is not between 0 and 1"),
        (json.dumps(line(2, models={})), "line 2: models is empty"),
        (json.dumps(line(2, models={"all": {"loss": 1.0}})), "line 2 has other figures than the lines before it"),
        (json.dumps(line(4)), "line 2 is of round 4, not 2"),
    ],
)
def test_a_line_that_is_not_a_round_is_refused(tmp_path: Path, words: str, why: str) -> None:
    file = tmp_path / "rounds.jsonl"
    file.write_text(f"{json.dumps(line(1))}\n{words}\n{json.dumps(line(3))}\n")
    with pytest.raises(InputError, match=f"rounds.jsonl is damaged.*{why}"):
        read_rounds(file)


def test_other_files_have_lines_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    append_lines(file, [{"a": 1}, {"a": 2}])
    assert read_lines(file, lambda found: found["a"] * 2) == [2, 4]
