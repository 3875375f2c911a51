"""Groups of runs that are not the paper's."""

from dataclasses import replace
from pathlib import Path

from feddyn.reports.comparisons import groups
from tests.views.test_comparison import record


def test_every_setting_of_a_leaderboard_is_a_group_and_other_runs_are_one(tmp_path: Path) -> None:
    """What a candidate of the tuning, which lies deeper, came to is no run of the setting."""
    records = []
    for name in ("near", "far"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tuned.json").write_text("{}")
        for method in ("adabest", "fedavg"):
            one = record([0.5, 0.7], algorithm={"name": method})
            records.append(replace(one, path=tmp_path / name / f"{method}-s0"))
    tried = replace(record([0.2]), path=tmp_path / "far" / "tuning" / "feddyn-s1000")
    missing: list[str] = []
    found = groups([*records, tried], missing)
    assert [shown.group.name for shown in found] == [str(tmp_path / "near"), str(tmp_path / "far"), "all runs"]
    assert [curve.label for curve in found[0].group.curves] == ["AdaBest", "FedAvg"]
    assert [len(shown.group.curves) for shown in found] == [2, 2, 1]
    assert found[2].table.title == "all runs: accuracy (mean of all devices)"
    assert not missing


def test_groups_of_several_figures_say_the_figure_once() -> None:
    goal = {"metric": "loss", "value": 0.1, "model": "all"}
    one = replace(record([0.5], target=goal), path=Path("a"))
    two = replace(record([0.5]), path=Path("b"))
    names = ["all runs: loss (mean of all devices)", "all runs: accuracy (mean of all devices)"]
    found = groups([one, two], [])
    assert [shown.group.name for shown in found] == names
    assert [shown.table.title.partition(", and")[0] for shown in found] == names
    assert [shown.group.targets for shown in found] == [[0.1], []]
