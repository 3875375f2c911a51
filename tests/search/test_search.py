"""Searches: grids, random values, halving, batches, and the best setting."""

from pathlib import Path
from typing import Any

import pytest

from feddyn.errors import InputError
from feddyn.runs.simulation import Simulation
from feddyn.search.batch import batches
from feddyn.search.driver import Searching
from feddyn.search.sampling import Trials
from feddyn.search.space import Outcome, best, grid, read
from feddyn.settings.building import plans
from feddyn.settings.documents import Document
from tests.paper.test_study import start
from tests.paper.tiny import setting


def comparison(space: dict[str, Any], **sweep: Any) -> Document:
    single = setting("feddyn")
    common = {key: value for key, value in single.items() if key not in ("algorithm", "solver")}
    methods = ("feddyn", "scaffold", "fedavg", "fedprox")
    compare = [{"algorithm": setting(m)["algorithm"], "solver": setting(m)["solver"]} for m in methods]
    return {**common, "compare": compare, "sweep": {**sweep, "space": space}}


SPACE = {"solver": {"lr": [0.3, 0.1, 0.03]}, "algorithm": {"alpha": [1.0, 0.1], "mu": [0.5]}}


def test_values_are_searched_for_the_methods_that_have_the_key() -> None:
    _, methods = read(comparison(SPACE))
    assert {method.label: len(grid(method)) for method in methods} == {
        "FedDyn": 6,
        "SCAFFOLD": 3,
        "FedAvg": 3,
        "FedProx": 3,
    }
    assert len({candidate.name for method in methods for candidate in grid(method)}) == 15
    first = grid(methods[0])[1]
    assert first.changes == {"solver.lr": 0.3, "algorithm.alpha": 0.1}
    assert first.document["solver"]["lr"] == 0.3
    assert first.document["algorithm"]["alpha"] == 0.1


def test_a_batch_gives_what_single_runs_give() -> None:
    """All methods of the grid in one stack, against a run of each candidate alone; float64, so that only the order of
    sums differs."""
    _, methods = read(comparison(SPACE) | {"model": {"name": "linear", "dtype": "float64"}})
    planned = [(candidate, plans(candidate.document)[0].plan) for method in methods for candidate in grid(method)]
    together, rest = batches(planned)
    # SCAFFOLD's 6 steps are as long as two epochs of 30 samples in batches of 10
    assert [len(batch.members) for batch in together] == [15]
    assert not rest
    for batch in together:
        for (candidate, plan), (history, status) in zip(batch.members, batch.histories(), strict=True):
            assert status == "finished"
            alone = Simulation(plan, workers=1)
            lines = list(alone)
            assert [line["transmitted"] for line in history] == [line["transmitted"] for line in lines]
            for metric in ("loss", "accuracy", "objective"):
                ours = [line["models"]["all"][metric] for line in history]
                theirs = [line["models"]["all"][metric] for line in lines]
                assert ours == pytest.approx(theirs, rel=1e-9), candidate.label


def test_a_batch_stops_when_all_reached_their_target() -> None:
    document = {**comparison({"solver": {"lr": [0.3, 0.1]}}), "target": {"metric": "accuracy", "value": 0.2}}
    document["compare"] = document["compare"][2:3]
    _, methods = read(document)
    planned = [(candidate, plans(candidate.document)[0].plan) for candidate in grid(methods[0])]
    (batch,), _ = batches(planned)
    assert all(len(history) < 8 and status == "target reached" for history, status in batch.histories())


def test_what_diverges_in_a_batch_says_so_and_is_not_the_best() -> None:
    _, methods = read(setting("fedavg") | {"sweep": {"space": {"solver": {"lr": [1e9, 0.1, 0.2]}}}})
    planned = [(candidate, plans(candidate.document)[0].plan) for candidate in grid(methods[0])]
    (batch,), _ = batches(planned)
    assert [status for _, status in batch.histories()] == ["diverged", "finished", "finished"]
    wild, tame = (
        Outcome(planned[place][0], status, 3, 3, None, "accuracy", value, "higher")
        for place, status, value in ((0, "diverged", 0.9), (1, "finished", 0.4))
    )
    assert best(methods, [wild, tame])["solver"]["lr"] == 0.1


def test_runs_that_the_engine_does_not_batch_are_not_batched() -> None:
    document = setting("fedavg") | {"stack": 1, "sweep": {"space": {"solver": {"lr": [0.1, 0.2]}}}}
    _, methods = read(document)
    planned = [(candidate, plans(candidate.document)[0].plan) for candidate in grid(methods[0])]
    assert batches(planned) == ([], planned)


def test_what_a_single_run_refuses_is_not_batched() -> None:
    """SCAFFOLD needs a path, which AdamW has not."""
    solver = {"name": "adamw", "epochs": 1}
    for method, batched in (("scaffold", 0), ("fedavg", 1)):
        _, methods = read(setting(method) | {"solver": solver, "sweep": {"space": {"solver": {"lr": [0.1, 0.2]}}}})
        planned = [(candidate, plans(candidate.document)[0].plan) for candidate in grid(methods[0])]
        assert [len(part) for part in batches(planned)] == [batched, 2 - 2 * batched]


def test_random_values_are_the_same_for_the_same_seed() -> None:
    space = {"solver": {"lr": {"low": 0.01, "high": 1.0, "log": True}, "epochs": {"low": 1, "high": 5}}}
    document = {**setting("fedavg"), "sweep": {"search": "random", "trials": 5, "seed": 3, "space": space}}
    drawn: list[list[dict[str, Any]]] = []
    for _ in range(2):
        search, (method,) = read(document)
        trials = Trials(search, method, 8, maximise=True)
        drawn.append([])
        for _ in range(5):
            drawn[-1].append(trials.ask().changes)
            trials.tell(0.5, given_up=False)
    assert drawn[0] == drawn[1]
    assert all(0.01 <= changes["solver.lr"] <= 1 and changes["solver.epochs"] in range(1, 6) for changes in drawn[0])
    assert len({changes["solver.lr"] for changes in drawn[0]}) == 5


def test_halving_gives_up_what_is_worse_than_the_best_third() -> None:
    search, (method,) = read(
        {**setting("fedavg"), "sweep": {"search": "halving", "trials": 9, "space": {"solver": {"lr": [0.1]}}}}
    )
    trials = Trials(search, method, 27, maximise=True)
    lengths = []
    for quality in (0.9, 0.1, 0.2, 0.3, 0.95, 0.4):
        trials.ask()
        ran = next((r for r in range(1, 28) if trials.give_up(r, quality * r / 27)), 27)
        trials.tell(quality, given_up=ran < 27)
        lengths.append(ran)
    assert lengths[0] == lengths[4] == 27
    assert max(lengths[1:4] + lengths[5:]) < 27


def test_the_best_is_what_reached_the_target_with_fewest_transmissions() -> None:
    _, methods = read(comparison(SPACE))
    lists = [grid(method) for method in methods]

    def outcome(place: int, number: int, transmitted: int | None, value: float) -> Outcome:
        return Outcome(lists[place][number], "finished", 8, 8, transmitted, "accuracy", value, "higher")

    found = [outcome(0, 0, None, 0.9), outcome(0, 1, 5, 0.6), outcome(0, 2, 4, 0.5), outcome(2, 0, None, 0.3)]
    found.append(outcome(2, 1, None, 0.4))
    document = best(methods, found)
    assert [entry["label"] for entry in document["compare"]] == ["FedDyn", "FedAvg"]
    assert document["compare"][0]["algorithm"] == {"name": "feddyn", "alpha": 1.0}
    assert document["compare"][0]["solver"]["lr"] == 0.1
    assert document["compare"][1]["solver"]["lr"] == 0.1
    assert len(plans(document)) == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sweep": {}}, "sweep.space is missing"),
        ({"sweep": {"space": {"solver": {"lr": []}}}}, "sweep.space.solver.lr must be a list of values"),
        (
            {"sweep": {"space": {"solver": {"lrr": [1.0]}}}},
            "space.solver.lrr: no method here has it; did you mean",
        ),
        ({"sweep": {"space": {"solver": {"lr": {"low": 1, "high": 2}}}}}, "a grid needs a list of values, not a range"),
        ({"sweep": {"search": "random", "space": {"rounds": [1]}}}, "needs trials"),
        ({"sweep": {"search": "gird", "space": {"rounds": [1]}}}, "sweep.search must be one of"),
        ({"sweep": {"trials": 3, "space": {"rounds": [1]}}}, "leave out trials"),
        (
            {"sweep": {"search": "random", "trials": 2, "space": {"rounds": {"low": 3, "high": 2}}}},
            "rounds: low must be below",
        ),
    ],
)
def test_bad_searches_get_one_sentence(change: Document, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read(setting("fedavg") | change)
    with pytest.raises(InputError, match=r"no \[sweep\] table"):
        read(setting("fedavg"))
    with pytest.raises(InputError, match="search keys of algorithm and solver only"):
        read(comparison({"rounds": [1, 2]}))


def test_a_batch_takes_a_negative_loss_as_single_runs_do(tmp_path: Path) -> None:
    """A likelihood may be above 1: it has not exploded."""
    (tmp_path / "mine.py").write_text(
        "from torch.nn.functional import cross_entropy\n\n"
        "def likelihood(output, y):\n    return cross_entropy(output, y) - 7\n"
    )
    document = comparison(SPACE) | {"loss": "mine.py:likelihood", "stack": 6}
    _, (method, *_) = read(document, tmp_path)
    planned = [(candidate, plans(candidate.document, folder=tmp_path)[0].plan) for candidate in grid(method)]
    (batch,), _ = batches(planned)
    assert {status for _, status in batch.histories()} == {"finished"}


def test_a_batch_says_that_a_target_was_reached_as_single_runs_do() -> None:
    """Where the run goes on after it, too."""
    document = comparison(SPACE) | {"target": {"metric": "objective", "value": 100.0, "stop": False}}
    planned = [(candidate, plans(candidate.document)[0].plan) for candidate in grid(read(document)[1][0])]
    (batch,), _ = batches(planned)
    for (_, plan), (history, status) in zip(batch.members, batch.histories(), strict=True):
        alone = Simulation(plan, workers=1)
        assert len(list(alone)) == len(history) == 8
        assert alone.run.status == status == "target reached"


def test_a_random_search_trains_what_halving_gave_up(tmp_path: Path) -> None:
    """In the same directory; the searched key need not be in the setting."""
    single = setting("fedavg") | {"solver": {"epochs": 2, "batch_size": 10}, "stack": 1}
    space = {"solver": {"lr": [0.1, 1e-9, 1e-8, 1e-7]}}
    lengths = []
    for kind in ("halving", "random"):
        document = single | {"sweep": {"search": kind, "trials": 8, "space": space}}
        searching = Searching(document, tmp_path, start)
        list(searching.outcomes())
        lengths.append({outcome.candidate.name: outcome.rounds for outcome in searching.found})
    assert lengths[0].keys() == lengths[1].keys()
    assert min(lengths[0].values()) < 8
    assert set(lengths[1].values()) == {8}


def test_a_grid_keeps_the_curve_of_every_candidate(tmp_path: Path) -> None:
    """Batched or not, and when the search is read again; what is not finite has no figure."""
    document = comparison(SPACE) | {"model": {"name": "linear", "dtype": "float64"}}
    found: list[dict[str, Any]] = []
    for place, batch in (("batched", True), ("alone", False), ("batched", True)):
        searching = Searching(document, tmp_path / place, start, batch)
        assert (searching.known() is None) == (len(found) < 2)
        outcomes = [outcome for *_, outcome in searching.outcomes()]
        found.append({outcome.candidate.name: outcome.curve for outcome in outcomes})
    assert found[0] == found[2]
    for name, curve in found[0].items():
        assert curve["round"] == list(range(1, 9))
        assert list(curve) == list(found[1][name])
        for column, values in curve.items():
            assert values == pytest.approx(found[1][name][column], rel=1e-9)
    assert (tmp_path / "batched" / "best.toml").read_bytes() == (tmp_path / "alone" / "best.toml").read_bytes()
    (tmp_path / "batched" / "trials.jsonl").write_text('{"name": "x", "curve": {"round": [1], "loss": [1, 2]}}\n')
    with pytest.raises(InputError, match="status is missing"):
        Searching(document, tmp_path / "batched", start)


def test_figures_that_are_not_finite_can_be_read_again(tmp_path: Path) -> None:
    document = setting("fedavg") | {"sweep": {"space": {"solver": {"lr": [1e9, 0.1]}}}}
    for _ in range(2):
        wild, tame = (outcome for *_, outcome in Searching(document, tmp_path, start).outcomes())
        assert (wild.status, tame.status) == ("diverged", "finished")
        assert len(wild.curve["round"]) < 8 == len(tame.curve["round"])


def test_compressors_are_searched_by_bytes(tmp_path: Path) -> None:
    """8, 4 and 2 bits reach the target in as many rounds or more; by models transmitted, whose lengths differ, 8 bits
    would be the best. Uncompressed ones are not computed in a batch, which knows no bytes."""
    single = setting("feddyn") | {"uplink": {"name": "quantized", "bits": 8}, "rounds": 30}
    single["target"] = {"metric": "objective", "gap": 0.5}
    space = {"uplink": {"bits": [8, 4, 2]}}
    search = Searching(single | {"sweep": {"space": space}}, tmp_path, start)
    outcomes = {outcome.candidate.changes["uplink.bits"]: outcome for *_, outcome in search.outcomes()}
    assert all(outcome.transmitted for outcome in outcomes.values())
    lengths = [outcome.bytes or 0 for outcome in outcomes.values()]
    assert min(outcomes.values(), key=lambda outcome: outcome.rank).bytes == min(lengths) > 0
    assert min(outcomes, key=lambda bits: outcomes[bits].rank) != 8
