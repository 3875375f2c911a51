"""Tables and plots from summaries and histories."""

from pathlib import Path
from typing import Any

from feddyn.reports.curves import convergence
from feddyn.reports.tables import Table, comparison


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
    assert comparison("t", runs, "FedDyn", model="all", metric="loss", target=False).rows[1][:3] == [
        "FedAvg",
        "200",
        "4.0x",
    ]


def test_markdown_and_csv() -> None:
    table = Table("title", ["a", "b"], [["1", "2, 3"]], ["note"])
    assert table.markdown() == "**title**\n\n| a | b |\n| --- | --- |\n| 1 | 2, 3 |\n\nnote\n"
    assert table.csv() == 'a,b\n1,"2, 3"\n'


def test_a_plot_is_written(tmp_path: Path) -> None:
    history = [{"transmitted": t, "models": {"all": {"loss": 1 / t}}} for t in (1, 2, 3)] + [{"transmitted": 4}]
    convergence({"FedDyn": history}, tmp_path / "plot.png", metric="loss", target=0.5)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
