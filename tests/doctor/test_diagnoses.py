"""Every diagnosis on a run that has the illness, and on one that has not: small runs, made here."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import feddyn
from feddyn.data.stored import Stored
from feddyn.doctor.diagnosis import diagnose
from feddyn.models import zoo
from feddyn.records.layout import Status
from feddyn.records.reader import find, read


def homogeneous() -> Stored:
    """Twenty devices that all have samples of the same kind."""
    return feddyn.synthetic("homogeneous", devices=20, samples=20, features=10, classes=4)


def different() -> Stored:
    """Each with a model of its own for its labels."""
    return feddyn.synthetic("type2", devices=20, samples=20, features=10, classes=4)


def unequal() -> Stored:
    """Four, of which the last one has most of the samples."""
    data = different()
    return feddyn.Population.from_arrays(data.x, data.y, [min(k, 3) for k in range(20) for _ in range(20)])


def apart() -> Stored:
    """Twenty, each with samples of a single class."""
    data = homogeneous()
    order = torch.argsort(data.y, stable=True)
    return feddyn.Population.from_arrays(data.x[order], data.y[order], [k for k in range(20) for _ in range(20)])


@cache
def run(
    alpha: float | None = 0.1,
    participation: int = 10,
    rounds: int = 60,
    data: Callable[[], Stored] = different,
    uplink: feddyn.Compressor | None = None,
    downlink: feddyn.Compressor | None = None,
    **solver: Any,
) -> feddyn.Run:
    """A small network trained by FedDyn or, without an alpha, by FedAvg."""
    torch.manual_seed(0)
    method = feddyn.FedAvg() if alpha is None else feddyn.FedDyn(alpha)
    try:
        return feddyn.simulate(
            zoo.mlp(10, 4, hidden=12).double(),
            data(),
            method,
            feddyn.SGD(**{"lr": 0.1, "epochs": 5, "batch_size": 10} | solver),
            participation=participation,
            rounds=rounds,
            workers=1,
            uplink=uplink,
            downlink=downlink,
        )
    except feddyn.DivergenceError as error:
        return cast(feddyn.Run, error.run)


SOUND = {"alpha": 0.1, "participation": 10, "rounds": 60}
ILL: dict[str, tuple[Callable[[], feddyn.Run], Callable[[], feddyn.Run], list[str]]] = {
    "diverged": (
        lambda: run(alpha=10.0, lr=0.15),
        lambda: run(**SOUND),
        ["alpha * lr is far below 1", "||theta||"],
    ),
    "states grow": (
        lambda: run(alpha=1e-4, participation=2, rounds=150, lr=0.3, weight_decay=1e-3),
        lambda: run(alpha=0.3, participation=2, rounds=150, lr_decay=0.98),
        ["2 of 20 devices a round", "a larger algorithm.alpha", "||theta||"],
    ),
    "drift": (
        lambda: run(alpha=None, rounds=40, data=apart, epochs=30, weight_decay=0.05),
        lambda: run(alpha=None, rounds=40, data=homogeneous, weight_decay=0.05),
        ["60 steps a round", "drift / ||theta|| late"],
    ),
    "clip": (
        lambda: run(alpha=None, rounds=20, clip=0.02),
        lambda: run(alpha=None, rounds=20, clip=10.0),
        ["clip 0.02", "at least 9"],
    ),
    "uplink compressed too strongly": (
        lambda: run(alpha=0.02, uplink=feddyn.RandomK(0.03)),
        lambda: run(alpha=0.02, uplink=feddyn.Quantized(4)),
        ["not sent / sent late", "a larger algorithm.alpha than 0.02"],
    ),
    "downlink compressed too strongly": (
        lambda: run(alpha=0.02, downlink=feddyn.RandomK(0.1)),
        lambda: run(alpha=0.02, downlink=feddyn.Quantized(4)),
        ["not sent / sent late", "[downlink]"],
    ),
    "one device dominates": (
        lambda: run(alpha=None, participation=2, rounds=20, data=unequal),
        lambda: run(alpha=None, participation=2, rounds=20),
        ["device 3 does most of the training", "samples"],
    ),
    "devices never active": (
        lambda: run(alpha=None, participation=2, rounds=6, data=homogeneous),
        lambda: run(alpha=None, participation=10, rounds=6, data=homogeneous),
        ["of 20 devices", "server and all"],
    ),
    "plateau": (
        lambda: run(alpha=None, rounds=60, lr_decay=0.7),
        lambda: run(**SOUND),
        ["hardly improved since round", "solver.lr_decay"],
    ),
    "alpha far from its useful range": (
        lambda: run(alpha=1e-4, rounds=5),
        lambda: run(alpha=0.1, rounds=5),
        ["alpha * lr * steps 0.0001", "an alpha between 0.05 and 2"],
    ),
}


def names(found: feddyn.Run) -> list[str]:
    return [finding.name for finding in diagnose(found).findings]


@pytest.mark.parametrize("name", ILL)
def test_an_illness_is_found_where_it_is(name: str) -> None:
    ill, sound, words = ILL[name]
    found = diagnose(ill())
    (finding,) = [finding for finding in found.findings if finding.name == name]
    for word in words:
        assert word in str(finding), str(finding)
    assert name not in names(sound()), str(diagnose(sound()))


def test_a_sound_run_has_nothing() -> None:
    found = diagnose(run(**SOUND))
    assert str(found) == "nothing found in 60 rounds"


def test_an_alpha_that_is_too_large_overshoots() -> None:
    assert "overshoot" in str(diagnose(run(alpha=10.0, rounds=2)))
    assert "hardly leave the model" in str(diagnose(run(alpha=9.0, rounds=2, epochs=20)))


def test_one_device_that_is_always_asked_dominates() -> None:
    """Device 0 in every round, and alone in most of them."""
    schedule = [[0]] * 15 + [[0, 1], [0, 2], [0, 3]]
    found = feddyn.simulate(
        zoo.linear(10, 4).double(),
        feddyn.synthetic("type1", devices=20, samples=20, features=10, classes=4),
        feddyn.FedAvg(),
        feddyn.SGD(lr=0.1, epochs=1),
        participation=schedule,
        rounds=18,
        workers=1,
    )
    assert "18 of 18 rounds" in str(diagnose(found))
    assert "one device dominates" in names(found)


def test_few_rounds_say_little() -> None:
    assert "of how it develops nothing can be said before round 12" in str(diagnose(run(rounds=5)))
    empty = replace(run(rounds=5), history=[], status=Status.RUNNING)
    with pytest.raises(feddyn.InputError, match="nothing to judge by: the run has no rounds yet"):
        diagnose(empty)


@pytest.mark.parametrize("missing", [("norms",), ("devices",), ("devices", "norms", "broadcast"), ("models",)])
def test_what_a_record_need_not_have_is_not_needed(missing: tuple[str, ...]) -> None:
    """A deployment's lines do not say how far devices moved; old ones say even less."""
    found = run(alpha=None, rounds=20, clip=0.02)
    lines = [{key: value for key, value in line.items() if key not in missing} for line in found.history]
    told = [finding.name for finding in diagnose(replace(found, history=lines)).findings]
    assert ("clip" in told) == ("devices" not in missing)


def test_no_clip_is_found_where_the_step_follows_a_schedule() -> None:
    """The step sizes of a schedule are not in the setting."""
    found = run(alpha=None, rounds=20, clip=0.02)
    solver = {**found.setting["solver"], "schedule": {"name": "cosine"}}
    told = diagnose(replace(found, setting={**found.setting, "solver": solver})).findings
    assert "clip" not in [finding.name for finding in told]


def test_records_in_the_repository_are_sound() -> None:
    """Long runs of the paper's settings: at most a plateau, where they went on after they had converged; and the drift
    of FedAvg where neither a decay of the step nor the method holds it back."""
    folder = Path(__file__).parents[2] / "docs" / "results" / "records"
    records, _ = find([folder])
    assert len(records) > 30
    findings = {record.path.name: [one.name for one in diagnose(read(record.path)).findings] for record in records}
    drifting = {name.rpartition("-s0-")[0] for name, found in findings.items() if "drift" in found}
    assert drifting == {"shakespeare-iid-100x0.1-fedavg", "shakespeare-natural-100x0.1-fedavg"}
    assert all(found in ([], ["plateau"], ["drift"]) for found in findings.values()), findings
    flat = sum(found == ["plateau"] for found in findings.values())
    page = " ".join((folder.parents[1] / "compare.md").read_text(encoding="utf-8").split())
    assert (
        f"{len(records)} runs of up to 1,000 rounds, it finds a plateau in {flat}, FedAvg's drift in {len(drifting)}"
        in page
    )


def test_a_notebook_shows_the_findings() -> None:
    page = diagnose(run(alpha=1e-4, rounds=5))._repr_html_()
    assert "1 finding in 5 rounds" in page
    assert "<td>alpha far from its useful range</td>" in page


def test_a_target_in_percent_is_far_away() -> None:
    found = run()
    for value, names in ((95.0, ["target far away"]), (found.best + 0.01, [])):
        goal = {"metric": "accuracy", "value": value, "model": "all", "stop": True}
        told = diagnose(replace(found, setting={**found.setting, "target": goal})).findings
        assert [one.name for one in told] == names
