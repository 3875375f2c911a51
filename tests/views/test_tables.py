"""Tables and plots from summaries and histories."""

import csv
from pathlib import Path
from typing import Any

from feddyn.reports.curves import convergence
from feddyn.views.tables import Table, comparison


def summary(transmitted: int, *, reached: bool, status: str = "finished") -> dict[str, Any]:
    counts: dict[str, Any] = {"round": transmitted, "transmitted": transmitted, "models": {"all": {"loss": 0.25}}}
    counts |= {"bytes_up": 1500, "bytes_down": 2_000_000}
    return {"status": status, "reached": counts if reached else None, "last": counts}


def test_counts_savings_and_what_was_not_reached() -> None:
    runs = {
        "FedDyn": summary(50, reached=True),
        "FedAvg": summary(200, reached=False),
        "FedProx": summary(7, reached=False, status="diverged"),
        "SCAFFOLD": {"status": "diverged", "reached": None, "last": None},
    }
    rows = comparison("t", runs, "FedDyn", model="all", metric="loss", target=True).rows
    assert rows[0] == ["FedDyn", "50", "1.0x", "50", "1.5 kB", "2 MB", "0.2500"]
    assert rows[1] == ["FedAvg", "200+", ">4.0x", "200", "1.5 kB+", "2 MB+", "0.2500"]
    assert rows[2] == ["FedProx", "diverged", "-", "7", "-", "-", "-"]
    assert rows[3] == ["SCAFFOLD", "diverged", "-", "0", "-", "-", "-"]


def test_a_factor_that_says_nothing_is_left_out() -> None:
    """It stopped before it had transmitted what the reference needed: it may need less than that, or more."""
    runs = {"FedDyn": summary(50, reached=True), "FedAvg": summary(2, reached=False)}
    assert comparison("t", runs, "FedDyn", model="all", metric="loss", target=True).rows[1][1:3] == ["2+", "-"]


def test_of_a_long_table_the_first_rows_and_where_the_others_are() -> None:
    table = Table("t", ["a"], [[str(number)] for number in range(30)], ["note"])
    shown = table.first(20, Path("out/tables"))
    assert [row[0] for row in shown.rows] == [str(number) for number in range(20)]
    assert shown.notes == ["10 more rows in out/tables.", "note"]
    assert table.first(30, Path("out")) is table


def test_without_a_target_nothing_is_said_to_be_saved() -> None:
    runs = {"FedDyn": summary(6, reached=False), "SCAFFOLD": summary(12, reached=False)}
    table = comparison("t", runs, "FedDyn", model="all", metric="loss", target=False)
    assert table.columns == ["method", "models transmitted", "rounds", "sent up", "sent down", "loss at the end"]
    assert table.rows[1] == ["SCAFFOLD", "12", "12", "1.5 kB", "2 MB", "0.2500"]


def test_markdown_and_csv() -> None:
    table = Table("title", ["a", "b"], [["1", "2, 3"]], ["note"])
    assert table.markdown() == "**title**\n\n| a | b |\n| --- | --- |\n| 1 | 2, 3 |\n\nnote\n"
    assert table.csv() == 'a,b\n1,"2, 3"\n'


HOSTILE = "\x1b[31mred\x07\n\u202eback\udcff"
SHOWN = r"\x1b[31mred\x07\n\u202eback\udcff"


def test_characters_that_nobody_sees_are_written_out(tmp_path: Path) -> None:
    """Those that colour a terminal, ring its bell, end a line, turn the writing around or are no text at all."""
    table = Table(HOSTILE, [HOSTILE, "b"], [[HOSTILE, "± plain"]], [HOSTILE])
    for text in (table.markdown(), table.csv()):
        assert SHOWN in text
        assert "± plain" in text
    latex = SHOWN.replace("\\", r"\textbackslash{}")
    assert table.latex().count(latex) == 4
    for file in table.save(tmp_path, "table"):
        assert all(character.isprintable() for character in file.read_text().replace("\n", ""))


def test_nothing_in_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    """Texts that look like one get an apostrophe, numbers and dashes do not, and reading gives the same table."""
    cells = ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "-0.5", "+3", "-1e-05", "-", "FedDyn", "'quoted"]
    table = Table("title", [f"column {n}" for n in range(len(cells))], [cells])
    (tmp_path / "table.csv").write_text(table.csv(), encoding="utf-8")
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as stream:
        _, row = csv.reader(stream)
    quoted = [f"'{cell}" for cell in cells[:4]]
    assert row == [*quoted, *cells[4:]]
    assert Table.load(tmp_path / "table.csv", "title") == table


def test_a_label_is_no_formula_in_a_plot_either(tmp_path: Path) -> None:
    history = [{"transmitted": t, "models": {"all": {"loss": 1 / t}}} for t in (1, 2)]
    convergence({r"$\nosuch{$ \x1b": history}, tmp_path / "plot.png", metric="loss", better="lower")


def test_a_plot_is_written(tmp_path: Path) -> None:
    history = [{"transmitted": t, "models": {"all": {"loss": 1 / t}}} for t in (1, 2, 3)] + [{"transmitted": 4}]
    convergence({"FedDyn": history}, tmp_path / "plot.png", metric="loss", better="lower", target=0.5)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
