"""The paper's tables from records: counts, spread, savings, marks and orders."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from feddyn.paper.catalogue import COLUMNS, experiments
from feddyn.records.layout import Status
from feddyn.records.reader import RunRecord, read
from feddyn.reports.paper import Count, _outside, compared, table
from feddyn.reports.records import Entry
from feddyn.reports.records import entries as of_experiment

ROW = "mnist-iid-10"
"""The paper: 98.2% after 100, 142, 588, 362 models, 97.2% after 31, 52, 49, 43."""


def run(counts: Sequence[int | None], rounds: int, sent: int = 1) -> RunRecord:
    """A run that reached 98.2% and 97.2% after so many transmissions (None: never)."""
    high, low = (count or 10**9 for count in counts)
    history: list[dict[str, Any]] = []
    for number in range(1, rounds + 1):
        accuracy = 0.982 if number * sent >= high else 0.972 if number * sent >= low else 0.5
        history.append({"round": number, "transmitted": number * sent, "models": {"all": {"accuracy": accuracy}}})
    return RunRecord(Path(), "", {}, history, Status.INTERRUPTED, "", 1.0)


def entries(runs: dict[str, list[RunRecord]]) -> list[Entry]:
    jobs = {job.method: job for job in experiments()["participation"].jobs if job.row == ROW}
    return [Entry(jobs[method], seed, record) for method in COLUMNS for seed, record in enumerate(runs.get(method, ()))]


def rows(runs: dict[str, list[RunRecord]]) -> tuple[list[list[str]], str]:
    made = table(experiments()["participation"], entries(runs))
    return [list(row) for row in made.rows], " ".join(made.notes)


def test_ours_stands_beside_theirs_with_savings() -> None:
    found, notes = rows(
        {
            "feddyn": [run((100, 30), 100)],
            "scaffold": [run((150, 60), 90, sent=2)],
            "fedavg": [run((500, 50), 500)],
            "fedprox": [run((None, 45), 300)],
        }
    )
    assert found[0] == [
        *(
            ROW,
            "98.2",
            "100",
            "100",
            "150 (1.5x)",
            "142 (1.4x)",
            "500 (5.0x)",
            "588 (5.9x)",
            "300+ (>3.0x)",
            "362 (3.6x)",
        )
    ]
    assert found[1][2:] == ["30", "31", "60 (2.0x)", "52 (1.7x)", "50 (1.7x)", "49 (1.6x)", "45 (1.5x)", "43 (1.4x)"]
    assert "Of 2 rows in which methods can be compared, their order agrees with the paper's in 2." in notes
    assert "*" not in notes


def test_several_seeds_have_a_mean_and_a_range() -> None:
    found, _ = rows({"feddyn": [run((98, 30), 100), run((102, 33), 110)], "fedavg": [run((None, 48), 200)] * 2})
    assert found[0][2] == "100.0 ± 2.8 (98 to 102)"
    assert found[0][6] == "200+ (>2.0x)"
    assert found[1][6] == "48.0 ± 0.0 (48 to 48) (1.5x)"
    assert found[1][4] == "-"
    assert str(Count([None, 40, 44], [20, 60, 60])) == "42.0 ± 2.8 (40 to 44), 1 at 20+"
    assert str(Count([None, None], [1000, 300])) == "300+ to 1000+"
    some, _ = rows({"feddyn": [run((50, 30), 60)], "fedavg": [run((100, 48), 1000), run((None, 48), 500)]})
    assert some[0][6] == "100, 1 at 500+ (>6.0x)"  # at least (100 + 500) / 2 / 50


def test_a_run_that_diverged_says_so() -> None:
    """It is in no ratio or order, and in a mark where nothing else is; one that diverged after the target has reached
    it."""
    lost = replace(run((None, 2), 3), status=Status.DIVERGED)
    found, notes = rows({"feddyn": [run((100, 31), 100)], "fedavg": [lost], "fedprox": [run((362, 43), 400), lost]})
    assert found[0][6] == "diverged*"
    assert found[1][6].startswith("2 (0.065x)")
    assert found[0][8] == "362, 1 diverged"
    assert "Of 1 rows" in notes


def test_what_lies_far_from_the_paper_is_marked() -> None:
    """More than 20% beyond the range of ours, on either side; what is open is not marked."""
    found, notes = rows({"feddyn": [run((80, 60), 80), run((83, 60), 90)], "fedprox": [run((None, None), 40)]})
    assert found[0][2].endswith("*")  # 100 > 1.2 * 83
    assert found[1][2].endswith("*")  # 31 < 0.8 * 60
    assert found[0][8] == "40+"  # less than FedDyn's count: it may need fewer models, or more
    assert f"{ROW} 98.2% FedDyn" in notes
    near, notes = rows({"feddyn": [run((84, 38), 90)]})
    assert not any("*" in cell for row in near for cell in row)


def test_another_order_than_the_papers_is_said() -> None:
    found, notes = rows({"feddyn": [run((100, 60), 100)], "fedavg": [run((600, 50), 600)]})
    assert "Of 2 rows in which methods can be compared, their order agrees with the paper's in 1;" in notes
    assert f"{ROW} 97.2%: FedAvg before FedDyn" in notes
    _, notes = rows({"feddyn": [run((None, 31), 50)], "fedavg": [run((None, 49), 60)]})
    assert "Of 1 rows" in notes  # 98.2% is open: neither got there yet
    assert len(found) == 2


@pytest.mark.parametrize("name", ["distributed-sgd", "alpha", "centralised", "fedsplit"])
def test_other_experiments_have_tables_too(name: str) -> None:
    experiment = experiments()[name]
    line = {"round": 3, "transmitted": 3, "gradients": 1200, "models": {"all": {"accuracy": 0.975}}}
    line["models"]["server"] = line["models"]["all"]  # type: ignore[index]
    record = RunRecord(Path(), "", {}, [line], Status.FINISHED, "", 1.0)
    made = table(experiment, [Entry(experiment.jobs[0], 0, record)])
    words = " ".join(made.rows[0])
    assert experiment.jobs[0].row in words
    assert "97.50%" in words or "1,200" in words


def test_a_seed_that_was_run_to_the_lower_target_alone_says_nothing_of_the_higher_one() -> None:
    """One that was stopped elsewhere does: it needs more than it transmitted."""
    seeds = [run((80, 30), 80), run((82, 30), 82)]
    for more in ([], [run((None, 29), 29)]):
        found, notes = rows({"feddyn": [*seeds, *more], "fedavg": [run((500, 49), 500)]})
        assert found[0][2] == "81.0 ± 1.4 (80 to 82)*"  # 100 > 1.2 * 82
        assert found[0][6] == "500 (6.2x)"
        assert found[1][2].startswith("30.0" if not more else "29.7")
        assert "left out at the higher one" in notes
    lost = replace(run((None, 29), 29), status=Status.DIVERGED)
    found, _ = rows({"feddyn": [*seeds, lost]})
    assert found[0][2] == "81.0 ± 1.4 (80 to 82), 1 diverged*"
    found, _ = rows({"feddyn": [*seeds, run((None, 29), 40)]})
    assert found[0][2] == "81.0 ± 1.4 (80 to 82), 1 at 40+"  # 100 may be in the range of ours
    found, _ = rows({"feddyn": [run((None, 29), 29), run((None, 31), 31)]})
    assert found[0][2] == "29+ to 31+"


@pytest.mark.parametrize(
    ("counts", "limits", "diverged", "far"),
    [
        ([450, None], [450, 460], 0, False),  # 362 lies above 0.8 * 450
        ([455, None], [455, 600], 0, True),
        ([600, None], [600, 30], 0, False),
        ([290, None], [290, 300], 0, False),  # the other one may need 362
        ([290, 300], [290, 300], 0, True),
        ([290, 302], [290, 302], 1, False),
        ([], [], 2, True),
    ],
)
def test_what_has_not_got_there_may_need_any_number_above(
    counts: list[int | None], limits: list[int], diverged: int, far: bool
) -> None:
    assert _outside(Count(counts, limits, diverged), "362") is far
    assert _outside(Count(counts, limits, diverged), "1000+") is bool(counts and None not in counts)


def test_methods_whose_seeds_overlap_have_no_order() -> None:
    _, notes = rows({"feddyn": [run((None, 30), 30), run((None, 50), 50)], "fedavg": [run((None, 45), 45)]})
    assert "can be compared" not in notes
    _, notes = rows({"feddyn": [run((None, 30), 30), run((None, 44), 44)], "fedavg": [run((None, 45), 45)]})
    assert "Of 1 rows" in notes


def test_a_copy_of_a_record_is_no_further_seed() -> None:
    (path,) = (Path(__file__).parents[2] / "docs" / "results" / "records").glob("mnist-iid-100x0.1-feddyn-s1-*")
    long = read(path)
    short = replace(long, history=long.history[:20])
    for records in ([long, short], [short, long]):
        (found,) = of_experiment(experiments()["participation"], records)
        assert (found.seed, len(found.record.history)) == (1, len(long.history))


def test_a_rival_that_needs_more_rounds_than_the_paper_has_is_told_of() -> None:
    """The paper has 1000, and writes 1000+; one that was stopped earlier may need any number."""
    for fedavg, whole in (
        ([run((500, 50), 500), run((None, 50), 1000)], True),
        ([run((500, 50), 500), run((None, 50), 999)], False),
    ):
        found = entries({"feddyn": [run((100, 30), 100)], "fedavg": fedavg})
        (high, low) = (one for one in compared(experiments()["participation"], found) if one.row == ROW)
        assert high.told("fedavg") is whole
        assert not high.measured("fedavg")
        assert low.told("fedavg")
        assert not low.told("fedprox")
