"""Runs beside each other, against records made by hand whose means and counts can be read off."""

import itertools
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.errors import FeddynError, InputError
from feddyn.records.layout import Status
from feddyn.records.reader import RunRecord
from feddyn.views.comparison import compare
from feddyn.views.differences import differing, label, ordered, short, words
from feddyn.views.tables import sparkline

NUMBERS = itertools.count()


def record(values: list[float], seed: int = 0, **changes: Any) -> RunRecord:
    """A run whose accuracy took these values: a model transmitted and 100 + 100 bytes a round."""
    setting: dict[str, Any] = {"seed": seed, "rounds": 9, "algorithm": {"name": "feddyn", "alpha": 0.1}}
    setting |= {"solver": {"name": "sgd", "lr": 0.1}, "evaluation": {"every": 1, "models": ["all"]}}
    setting |= {"population": {"source": "mnist", "seed": seed}}
    for key, value in changes.items():
        table, _, name = key.partition("_")
        setting = {**setting, table: {**setting.get(table, {}), name: value} if name else value}
    history = [
        {"round": t, "transmitted": t, "bytes_up": 100 * t, "bytes_down": 100 * t, "gradients": 7 * t}
        | {"models": {"all": {"loss": 1 - value, "accuracy": value}}}
        for t, value in enumerate(values, 1)
    ]
    return RunRecord(Path(f"r{next(NUMBERS)}"), "", setting, history, Status.FINISHED, "", 3.0)


def cells(comparison: feddyn.Comparison, row: int) -> dict[str, str]:
    return dict(zip(comparison.table.columns, comparison.table.rows[row], strict=True))


def test_seeds_are_one_row_and_differences_are_columns() -> None:
    """Of two seeds with 0.5, 0.7 and 0.7, 0.9 the means are 0.6 and 0.8; 0.8 is reached by the second alone."""
    found = compare(record([0.5, 0.7]), record([0.7, 0.9], 1), record([0.3, 0.2], algorithm_alpha=0.01), target=0.8)
    assert found.keys == ["algorithm.alpha"]
    assert [variant.label for variant in found.variants] == ["alpha 0.1", "alpha 0.01"]
    band = found.band(found.variants[0])
    assert (band.x, band.least, band.most) == ([1, 2], [0.5, 0.7], [0.7, 0.9])
    assert band.mean == pytest.approx([0.6, 0.8])
    first = cells(found, 0)
    assert first["alpha"] == "0.1"
    assert first["seeds"] == "0, 1"
    assert first["accuracy at the end"] == "0.8000 (0.7000 to 0.9000)"
    assert first["models to target"] == "2, 1 at 2+"
    assert first["sent to target"] == "400 B, 1 at 400 B+"
    assert first["time"] == "3 s"
    second = cells(found, 1)
    assert second["accuracy at the end"] == "0.2000"
    assert second["best"] == "0.3000"
    assert second["sent to target"] == "400 B+"
    assert second["curve"] == "█▁"


def test_a_run_that_ended_sooner_leaves_the_mean_to_the_others() -> None:
    band = (found := compare(record([0.5]), record([0.7, 0.9], 1))).band(found.variants[0], "bytes")
    assert (band.x, band.mean) == ([200, 400], [0.6, 0.9])


def test_methods_are_named_and_keys_of_one_of_them_come_last() -> None:
    avg = record([0.1], algorithm={"name": "fedavg"}, solver_epochs=5)
    found = compare(record([0.2]), avg)
    assert found.keys == ["algorithm.name", "algorithm.alpha", "solver.epochs"]
    assert [variant.label for variant in found.variants] == ["FedDyn", "FedAvg"]
    assert cells(found, 1)["alpha"] == "-"
    found = compare(record([0.2]), avg, record([0.3], algorithm_alpha=1.0))
    assert [variant.label for variant in found.variants] == ["FedDyn, alpha 0.1", "FedAvg", "FedDyn, alpha 1"]


def test_runs_that_differ_in_nothing_are_called_by_their_method() -> None:
    found = compare(record([0.1]), record([0.2], 1))
    assert [variant.label for variant in found.variants] == ["FedDyn"]
    assert cells(found, 0)["method"] == "FedDyn"
    assert cells(found, 0)["sent"] == "200 B"


def test_models_in_memory_of_every_seed_belong_together_and_others_do_not() -> None:
    """A hash that comes with the seed is no difference; two hashes of one seed are."""
    one, two = ({"memory": True, "name": "Net", "sha256": digit * 64} for digit in "ab")
    together = compare(record([0.1], 0, model=one), record([0.2], 1, model=two))
    assert len(together.variants) == 1
    apart = compare(record([0.1], 0, model=one), record([0.2], 0, model=two))
    assert [variant.label for variant in apart.variants] == ["model aaaaaaaa", "model bbbbbbbb"]


def test_the_target_of_the_settings_counts_where_all_have_it() -> None:
    target = {"metric": "accuracy", "value": 0.5, "model": "all"}
    assert compare(record([0.6], target=target), record([0.7], 1, target=target)).target == 0.5
    assert compare(record([0.6], target=target), record([0.7], 1)).target is None


def test_a_run_that_is_given_twice_counts_once(unbalanced: Stored, tmp_path: Path) -> None:
    """By its folder and as one of another's, or as itself: it is no second seed."""
    how: dict[str, Any] = {"participation": 2, "rounds": 1, "workers": 1, "out": tmp_path / "a"}
    solver = feddyn.SGD(lr=0.1, epochs=1, batch_size=10)
    run = feddyn.simulate(nn.Linear(4, 3), unbalanced, feddyn.FedAvg(), solver, **how)
    for found in (compare(tmp_path / "a", tmp_path), compare(run, run, tmp_path / "a")):
        assert cells(found, 0)["seeds"] == "0"


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(InputError, match="there is nothing to compare"):
        compare()
    with pytest.raises(InputError, match=r"have the acuracy \(mean of all devices\); did you mean 'accuracy'"):
        compare(record([0.1]), metric="acuracy")
    other = record([0.1], evaluation_models=["server"])
    other = replace(other, history=[{**other.history[0], "models": {"server": {"loss": 0.9}}}])
    with pytest.raises(InputError, match="not all runs have the model 'all'; they have none in common"):
        compare(record([0.1]), other)
    unseen = RunRecord(Path("r"), "", {}, [], Status.RUNNING, "", 0.0)
    with pytest.raises(InputError, match="r: no round of it has been evaluated yet"):
        compare(unseen)
    with pytest.raises(InputError, match="over 'rounds' is not known; did you mean 'round'"):
        (found := compare(record([0.1]))).band(found.variants[0], "rounds")


def test_pictures_for_notebooks() -> None:
    hostile = record([0.1, 0.2], algorithm={"name": "<b>$x"})
    found = compare(record([0.5, 0.7]), record([0.7, 0.9], 1), hostile, target=0.8)
    page = found._repr_html_()
    assert "data:image/png;base64,iVBOR" in page
    assert "&lt;b&gt;$x" in page
    assert "<b>" not in page
    axes = found.plot("transmitted").axes[0]
    assert axes.get_xlabel().startswith("models transmitted")
    assert len(axes.collections) == 1  # one band: the other has a single seed
    assert str(found).splitlines()[1].startswith("method")


def test_without_pandas_a_frame_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for give in (record([0.1]), compare(record([0.1]))):
        with pytest.raises(FeddynError, match=r"frame\(\) needs pandas: pip install pandas"):
            give.frame()


def test_frames() -> None:
    pytest.importorskip("pandas")
    one = record([0.5, 0.7])
    assert list(one.frame()["models.all.accuracy"]) == [0.5, 0.7]
    both = compare(one, record([0.1], algorithm_alpha=0.01)).frame()
    assert list(both["alpha"]) == [0.1, 0.1, 0.01]
    assert list(both["round"]) == [1, 2, 1]


def test_words_of_values() -> None:
    assert words("participation", [[0, 1], [2]]) == "a schedule"
    assert words("evaluation.models", ["server", "all"]) == "server, all"
    assert words("solver.lr", 0.1 + 0.2) == "0.3"
    assert short(["solver.lr", "server.lr"]) == {"solver.lr": "solver.lr", "server.lr": "server.lr"}
    assert differing([{"seed": 1, "a": {"b": 1}}, {"seed": 2, "a": {"b": 1}}]) == []
    assert label([], {"algorithm": {"name": "scaffold"}}) == "SCAFFOLD"


def test_numbers_have_four_digits_unless_runs_look_the_same() -> None:
    near = [record([0.1], solver_lr=lr) for lr in (0.123411, 0.123433, 0.5)]
    assert [variant.label for variant in compare(*near).variants] == ["lr 0.12341", "lr 0.12343", "lr 0.5"]
    assert [row[0] for row in compare(*near).table.rows] == ["0.12341", "0.12343", "0.5"]
    far = [record([0.1], solver_lr=lr) for lr in (0.160519, 0.5)]
    assert [variant.label for variant in compare(*far).variants] == ["lr 0.1605", "lr 0.5"]
    assert words("population.scale", 12345.0) == "12345"


def test_seeds_are_in_order() -> None:
    found = compare(record([0.1], 2), record([0.2], 0), record([0.3], 1))
    assert cells(found, 0)["seeds"] == "0, 1, 2"


def test_labels_leave_out_what_is_not_needed_to_tell_runs_apart() -> None:
    """How long a run is and how often it is looked at: the participation says as much."""
    pairs = [record([0.1], rounds=9, participation=0.1), record([0.1], rounds=20, participation=0.5)]
    assert [variant.label for variant in compare(*pairs).variants] == ["participation 0.1", "participation 0.5"]
    alone = [record([0.1], rounds=9), record([0.1], rounds=20)]
    assert [variant.label for variant in compare(*alone).variants] == ["rounds 9", "rounds 20"]
    assert ordered(["rounds", "algorithm.mu", "solver.lr", "algorithm.name"], [{"solver": {"lr": 1}}]) == [
        *("algorithm.name", "solver.lr", "algorithm.mu", "rounds")
    ]


def test_where_much_differs_a_terminal_has_one_column_for_it() -> None:
    changed = {f"solver_{name}": 1 for name in "abcdefg"}
    found = compare(record([0.1]), record([0.2], **changed))
    assert "a" in found.table.columns
    assert found.brief.columns[:2] == ["run", "seeds"]
    assert found.brief.rows[1][0] == "a 1, b 1, c 1, d 1, e 1, f 1, g 1"


def test_sparklines_have_the_ends_and_fit() -> None:
    assert sparkline(list(range(1000))) == "".join(sorted(sparkline(list(range(1000)))))
    assert len(sparkline(list(range(1000)))) == 20
    assert sparkline([1.0, 1.0]) == "▁▁"
    assert sparkline([]) == ""


def test_how_far_runs_are_is_said_where_some_are_not_complete() -> None:
    assert "status" not in compare(record([0.1])).table.columns
    paused = replace(record([0.1], 1), status=Status.INTERRUPTED)
    assert cells(compare(record([0.1]), paused), 0)["status"] == "finished, interrupted"


def test_what_follows_from_the_data_is_no_difference() -> None:
    """A table's encoding depends on which rows are for the test, and so on the seed."""
    own = {"source": "table", "file": "a.csv"}
    runs = [record([0.1], seed, population={**own, "encoding": {"age": {"mean": float(seed)}}}) for seed in (0, 1)]
    assert len(compare(*runs).variants) == 1


def test_whether_a_run_stops_at_its_target_does_not_change_the_price() -> None:
    goal = {"metric": "accuracy", "value": 0.6, "model": "all"}
    runs = [record([0.5, 0.7], target={**goal, "stop": stop}, algorithm_alpha=0.1 + stop) for stop in (True, False)]
    assert compare(*runs).target == 0.6
    assert compare(runs[0], record([0.5], target={**goal, "value": 0.9})).target is None


def test_seeds_that_did_not_reach_the_target_bound_nothing() -> None:
    """They may need more than the others: what they did so far stands beside the range of those."""
    runs = [record([0.5, 0.9]), record([0.5, 0.6, 0.7, 0.9], 1), record([0.5], 2)]
    assert cells(compare(*runs, target=0.8), 0)["models to target"] == "2 to 4, 1 at 1+"
    assert cells(compare(runs[2], record([0.5, 0.6], 3), target=0.8), 0)["models to target"] == "1+ to 2+"


def test_a_folder_of_records_is_all_of_them(tmp_path: Path) -> None:
    records = Path(__file__).parents[2] / "docs/results/records"
    for seed in (0, 1):
        (found,) = records.glob(f"mnist-iid-100x0.1-feddyn-s{seed}-*")
        shutil.copytree(found, tmp_path / str(seed))
    (tmp_path / "empty").mkdir()
    (one,) = compare(tmp_path).variants
    assert one.seeds == [0, 1]
    with pytest.raises(InputError, match=r"there is no record of a run in or below .*empty"):
        compare(tmp_path / "empty")
    with pytest.raises(InputError, match="there is no directory"):
        compare(tmp_path / "nope")
