"""What docs prints of its records is what they give."""

import shutil
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.results import DOCS, FIGURE, Results
from benchmarks.standings import told

from feddyn.errors import InputError
from feddyn.paper.catalogue import experiments
from feddyn.records.reader import RunRecord
from feddyn.reports.leaderboard import page
from feddyn.reports.provenance import provenance
from feddyn.reports.records import entries

RESULTS = Results()
MADE = {
    "results/cifar.md": ("progress", "fractions"),
    "results/compression.md": ("compression", "computed"),
    "results/leaderboard.md": ("winners",),
    "results/mnist.md": ("seeds", "times"),
    "results/tables.md": ("verdicts", "computed", "tables"),
    "../joss/paper.md": ("paper tables", "paper compression", "paper leaderboard", "paper speed"),
}


@pytest.fixture(scope="module")
def pages() -> dict[Path, str]:
    return RESULTS.pages()


def test_every_page_is_that_of_the_records(pages: dict[Path, str]) -> None:
    """Where one is not, `make results` makes it so."""
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path} is not what the records give: make results"


def test_the_pages_have_the_parts_that_are_made(pages: dict[Path, str]) -> None:
    """Marks that are lost would leave figures that nothing holds against the records."""
    for name, parts in MADE.items():
        text = pages[(DOCS / name).resolve()]
        for part in parts:
            assert f"<!-- results: {part}" in text, (name, part)
        assert text.count("<!-- results: ") == text.count("<!-- end of results -->") >= len(parts)
    assert DOCS / "results" / "leaderboard" / "leaderboard.md" in pages


def test_every_figure_is_shown_and_every_shown_one_is_there() -> None:
    """Those of the records are drawn by `make results`."""
    texts = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "results").glob("*.md"))
    assert {f"{name}.png" for name in FIGURE.findall(texts)} == {
        path.name for path in (DOCS / "results" / "figures").iterdir()
    }


def test_what_is_written_by_hand_stays() -> None:
    text = "before\n<!-- results: verdicts -->\nold\n<!-- end of results -->\nafter <!-- results: tables -->\n"
    made = RESULTS.renewed(text)
    assert made.startswith("before\n<!-- results: verdicts -->\n\n**rows of the paper's tables**")
    assert made.endswith("\n<!-- end of results -->\nafter <!-- results: tables -->\n")
    assert "old" not in made
    assert RESULTS.renewed(made) == made
    with pytest.raises(InputError, match="results: tabels is not known; did you mean 'tables'"):
        RESULTS.renewed(text.replace("verdicts", "tabels"))


def test_runs_without_what_they_were_tuned_to_are_refused(tmp_path: Path) -> None:
    """What was kept of the tuning does as well as the records of the candidates; with neither there is no page."""
    there = tmp_path / "results" / "leaderboard" / "synthetic-2-of-20"
    shutil.copytree(
        DOCS / "results" / "leaderboard" / "synthetic-2-of-20", there, ignore=shutil.ignore_patterns("tuning")
    )
    whole = RESULTS.boards["leaderboard"]
    alone = replace(whole.board, contests=whole.board.contests[:1])
    assert page(*Results(tmp_path).boards["leaderboard"]) == page(alone, whole.results[:1])
    (there / "tuned.json").unlink()
    with pytest.raises(InputError, match=r"does not say what methods were tuned to: copy tuned\.json too"):
        Results(tmp_path).boards  # noqa: B018


def test_rows_that_stand_in_two_tables_are_counted_once() -> None:
    """All but the last line of the verdicts are of one table: those of CIFAR with balanced data are in two of them."""
    *tables, total = ([int(cell) for cell in cells] for _, *cells in RESULTS.verdicts.rows)
    sums = [sum(column) for column in zip(*tables, strict=True)]
    twice = [row for row in experiments()["unbalanced"].printed if row[0].endswith("-balanced")]
    assert sums[0] - total[0] == len(twice) == 8
    reached = {
        (one.row.rpartition("-")[0], one.target) for one in RESULTS.compared("devices") if one.measured("feddyn")
    }
    assert sums[1] - total[1] == sum((row.rpartition("-")[0], target) in reached for row, target in twice) > 0


def test_a_record_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    shutil.copytree(RESULTS.records[0].path, tmp_path / "results" / "records" / "run")
    assert len(Results(tmp_path).records) == 1
    (tmp_path / "results" / "records" / "run" / "rounds.jsonl").write_text("[]\n")
    with pytest.raises(InputError, match="damaged"):
        Results(tmp_path).records  # noqa: B018


def test_every_record_is_of_a_run_of_the_paper() -> None:
    """And of the setting that the project has for it now."""
    named = {entry.record.path.name for e in experiments().values() for entry in entries(e, RESULTS.records)}
    assert named == {record.path.name for record in RESULTS.records}


def test_what_is_said_of_feddyn_on_cifar_is_in_its_record() -> None:
    words = " ".join((DOCS / "results" / "cifar.md").read_text().split())
    runs = [e.record for e in entries(experiments()["devices"], RESULTS.records) if e.job.row == "cifar10-iid-moderate"]
    long = next(r for r in runs if r.setting["algorithm"]["name"] == "feddyn" and r.setting["seed"] == 0)
    assert f"median {statistics.median(long.spent.values()):.0f} s" in words
    for number in (25, 50, 75, 100, 150, 200):
        assert f"{long.figures[number - 1]:.1%} at {'round ' if number == 25 else ''}{number}" in words
    first = next(line["round"] for line in long.evaluated if line["models"]["all"]["accuracy"] >= 0.823)
    assert f"82.3% in {first} rounds" in words
    assert f"stopped at round {len(long.history)} with {long.figures[-1]:.2%} (best {long.best:.2%})" in words


def test_what_is_said_of_cifar_and_shakespeare_at_10_and_at_1_percent_is_in_the_records() -> None:
    near: dict[str, list[bool]] = {}
    for name, part in (("devices", "10"), ("participation", "10"), ("participation-1pct", "1")):
        for one in RESULTS.compared(name):
            count = one.ours["feddyn"]
            if one.row.startswith(("cifar", "shakespeare")) and not one.row.endswith("-100") and count and count.mean:
                near.setdefault(part, []).append("feddyn" not in one.far)
    words = " ".join((DOCS / "results" / "cifar.md").read_text().split())
    assert all(near["10"])
    assert "Every count of FedDyn's that was reached lies within 20% of the paper's" in words
    assert (sum(near["1"]), len(near["1"])) == (2, 16)
    assert "where at 1% two of sixteen do" in words


def test_a_method_is_told_beside_its_leader_by_the_model_that_both_are_judged_by() -> None:
    """FedDynM with 2 of 100 at Dirichlet .1: AdaBest leads in the mean of all devices, but not by its server's."""
    ((contest, found),) = [pair for pair in RESULTS.contests() if pair[0].name == "MNIST, Dirichlet .1, 2 of 100"]
    heads, _, row = told([(contest, found)], "FedDynM").splitlines()[2:5]
    cells = dict(zip(heads.split(" | "), row.split(" | "), strict=True))
    leader, own = found[0], next(one for one in found if one.label == "FedDynM")
    assert leader.label == "AdaBest"
    assert cells["at the end"].startswith(f"accuracy {statistics.mean(own.values):.4f} ±")
    assert cells["the leader, at the end |"].startswith(f"AdaBest: {statistics.mean(leader.values):.4f} ±")
    ends = [[line["models"]["server"]["accuracy"] for line in r.evaluated[-3:]] for r in own.records.values()]
    assert cells["of the server's model"].startswith(f"{statistics.mean(map(statistics.mean, ends)):.4f} ±")


def test_what_is_said_of_the_higher_targets_of_mnist_is_in_the_records() -> None:
    """The rounds of FedAvg to every tenth of a point, and what was tried to explain its count in the paper."""
    words = (DOCS / "results" / "mnist.md").read_text(encoding="utf-8")
    runs = {record.path.name.rpartition("-")[0]: record for record in RESULTS.records}
    for split, name in (("IID", "iid"), ("Dirichlet (.6)", "dirichlet0.6"), ("Dirichlet (.3)", "dirichlet0.3")):
        cells = [first(runs[f"mnist-{name}-100x0.1-fedavg-s0"], target) for target in (0.979, 0.98)]
        assert f"| {split} | {cells[0]} | {cells[1]} |" in words
    seeds = [run for name, run in runs.items() if name.startswith("mnist-iid-100x0.1-fedavg-s")]
    *counts, last = sorted(first(run, 0.982) or 9999 for run in seeds)
    assert f"ten of them need {', '.join(map(str, counts[:-1]))} and {counts[-1]}, and one does not" in words
    assert len(counts) == 9
    assert last == 9999
    tried = {record.path.name: first(record, 0.982) for record in RESULTS.found("fedavg-schedule")}
    plain = runs["mnist-iid-100x0.1-fedavg-s0"]
    assert f"10 epochs) | {first(plain, 0.982)} |" in words
    assert f"mean of all devices | {first(plain, 0.982, 'server')} |" in words
    assert f"| no decay of the step | {tried['no-decay']} |" in words
    assert f"| 20 epochs, its choice at 100% | {tried['20-epochs']} |" in words


def test_what_is_said_of_standardised_filters_is_in_their_records() -> None:
    words = " ".join((DOCS / "results" / "leaderboard.md").read_text(encoding="utf-8").split())
    for method, pattern in (("feddyn", "FedDyn has {} in round 80"), ("fedavg", "and FedAvg {}")):
        runs = [r for r in RESULTS.found("standardised") if r.setting["algorithm"]["name"] == method]
        ends = [f"{100 * r.figures[-1]:.1f}" for r in sorted(runs, key=lambda r: r.setting["seed"])]
        assert pattern.format(f"{ends[0]}, {ends[1]} and {ends[2]}%") in words


def first(record: RunRecord, target: float, model: str = "all") -> int | None:
    """The first round in which a model has an accuracy."""
    found = (line["round"] for line in record.evaluated if line["models"][model]["accuracy"] >= target)
    return next(found, None)


def test_where_runs_were_computed_is_told_by_machine_and_day(tmp_path: Path) -> None:
    """Two on one machine, on two days; one elsewhere; one that does not say it."""
    begun = '{{"started": "2026-11-{day}T10:00:00+0000", "processor": "{name}", "cores": 2, "torch": "2.13.0"}}\n'
    sessions = [begun.format(day=17, name="A"), begun.format(day=16, name="A"), begun.format(day=18, name="B"), ""]
    for number, words in enumerate(sessions):
        shutil.copytree(RESULTS.records[0].path, tmp_path / "results" / "records" / str(number))
        (tmp_path / "results" / "records" / str(number) / "timings.jsonl").write_text(words)
    rows = [row[:5] for row in provenance(Results(tmp_path).records).rows]
    assert rows == [
        ["2026-11-16 to 2026-11-17", "2", "A", "2", "2.13.0"],
        ["2026-11-18", "1", "B", "2", "2.13.0"],
        ["not recorded", "1", "not recorded", "not recorded", "not recorded"],
    ]
