"""Step sizes over rounds: by hand, against PyTorch's own schedulers, in settings, sweeps and runs that are extended."""

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch

import feddyn
from feddyn.data.stored import Stored
from feddyn.runs.plan import Plan
from feddyn.settings.building import plans
from feddyn.settings.documents import read
from tests.cli.test_run import SINGLE


def sgd(schedule: feddyn.Schedule | None = None, **more: Any) -> feddyn.SGD:
    return feddyn.SGD(lr=0.4, epochs=1, schedule=schedule, **more)


def written(plan: Plan) -> dict[str, Any]:
    """A setting as a file has it."""
    return tomllib.loads(tomli_w.dumps(plan.setting()))


def rates(solver: feddyn.SGD, rounds: int) -> list[float]:
    return [float(solver.rate(round)) for round in range(rounds)]


def by_torch(make: Any, rounds: int) -> list[float]:
    """The step sizes of a scheduler of PyTorch's."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    scheduler, found = make(optimizer), []
    for _ in range(rounds):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def test_by_hand() -> None:
    """Cosine over 4: cos(0), cos(pi/4), cos(pi/2), cos(3 pi/4), and then as in the last round."""
    half = math.sqrt(0.5)
    expected = [0.4, 0.2 * (1 + half), 0.2, 0.2 * (1 - half), 0.2 * (1 - half)]
    assert rates(sgd(feddyn.Cosine(4)), 5) == pytest.approx(expected, rel=1e-12)
    assert rates(sgd(feddyn.Cosine(6, warmup=2)), 7) == pytest.approx([0.4 / 3, 0.8 / 3, *expected], rel=1e-12)
    least = rates(sgd(feddyn.Cosine(4, least=0.5)), 4)
    assert least == pytest.approx([0.4, 0.2 + 0.1 * (1 + half), 0.3, 0.2 + 0.1 * (1 - half)], rel=1e-12)
    assert rates(sgd(feddyn.Steps(every=2)), 5) == pytest.approx([0.4, 0.4, 0.04, 0.04, 0.004], rel=1e-12)
    assert rates(sgd(feddyn.Steps(at=[3, 1], factor=0.5)), 4) == pytest.approx([0.4, 0.2, 0.2, 0.1], rel=1e-12)
    assert rates(sgd(feddyn.Warmup(3)), 5) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4], rel=1e-12)
    both = sgd(feddyn.Steps(every=1, factor=0.5), lr_decay=0.1, halve_every=1)
    assert rates(both, 3) == pytest.approx([0.4, 0.4 * 0.025, 0.4 * 0.025**2], rel=1e-12)


def test_pytorch_agrees() -> None:
    schedulers = torch.optim.lr_scheduler
    cosine = by_torch(lambda optimizer: schedulers.CosineAnnealingLR(optimizer, 30, eta_min=0.04), 30)
    assert rates(sgd(feddyn.Cosine(30, least=0.1)), 30) == pytest.approx(cosine, rel=1e-9)
    steps = by_torch(lambda optimizer: schedulers.StepLR(optimizer, 7, gamma=0.3), 30)
    assert rates(sgd(feddyn.Steps(every=7, factor=0.3)), 30) == pytest.approx(steps, rel=1e-9)
    at = by_torch(lambda optimizer: schedulers.MultiStepLR(optimizer, [5, 9], gamma=0.3), 30)
    assert rates(sgd(feddyn.Steps(at=(5, 9), factor=0.3)), 30) == pytest.approx(at, rel=1e-9)


def test_without_a_schedule_nothing_changes(logistic: torch.nn.Module, unbalanced: Stored) -> None:
    """Neither a bit nor a key: 0.4 * (0.99^t * 0.5^n), and no word of it in the setting."""
    solver = feddyn.SGD(0.4, epochs=1, lr_decay=0.99, halve_every=3)
    assert rates(solver, 9) == [0.4 * (0.99**t * 0.5 ** (t // 3)) for t in range(9)]
    assert "schedule" not in Plan(logistic, unbalanced, feddyn.FedAvg(), solver, 2, 1).setting()["solver"]


def test_an_own_schedule(logistic: torch.nn.Module, unbalanced: Stored) -> None:
    class Own(feddyn.Schedule):
        def __call__(self, round: int) -> float:
            return 1.0 - round

    setting = Plan(logistic, unbalanced, feddyn.FedAvg(), sgd(Own()), 2, 1).setting()
    assert "solver" in setting["needs"]
    assert rates(sgd(Own()), 1) == [0.4]
    arguments: dict[str, Any] = {"participation": 2, "rounds": 2, "workers": 1}
    with pytest.raises(feddyn.InputError, match="the schedule Own: what it gives in round 2 must be"):
        feddyn.simulate(logistic, unbalanced, feddyn.FedAvg(), sgd(Own()), **arguments)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_in_a_setting(name: str, tmp_path: Path) -> None:
    text = SINGLE.replace("lr = 0.1", f'name = "{name}"\nlr = 0.1\nschedule = {{ name = "cosine", rounds = 6 }}')
    (tmp_path / "my.toml").write_text(text)
    ((_, plan),) = plans(read(tmp_path / "my.toml"), ["solver.schedule.warmup=2"])
    assert plan.setting()["solver"]["schedule"] == {"name": "cosine", "rounds": 6, "least": 0.0, "warmup": 2}
    ((_, again),) = plans(written(plan))
    assert again.setting() == plan.setting()
    assert again.solver == plan.solver
    ((_, other),) = plans(read(tmp_path / "my.toml"), ['solver.schedule={name = "steps", at = [2, 4]}'])
    assert other.setting()["solver"]["schedule"] == {"name": "steps", "at": (2, 4), "factor": 0.1, "warmup": 0}
    assert plans(written(other))[0].plan.solver == other.solver


def test_an_own_schedule_in_a_setting(tmp_path: Path) -> None:
    code = (
        "import feddyn\n\nclass Own(feddyn.Schedule):\n    def __init__(self, by: float = 0.5):\n        self.by = by\n"
    )
    (tmp_path / "own.py").write_text(code + "    def __call__(self, round):\n        return self.by ** round\n")
    text = SINGLE.replace("lr = 0.1", 'lr = 0.1\nschedule = { name = "own.py:Own", by = 0.25 }')
    (tmp_path / "my.toml").write_text(text)
    ((_, plan),) = plans(read(tmp_path / "my.toml"), folder=tmp_path)
    assert plan.setting()["solver"]["schedule"] == {"name": "own.py:Own", "by": 0.25}
    assert "needs" not in plan.setting()
    assert isinstance(plan.solver, feddyn.SGD)
    assert plan.solver.rate(2) == 0.1 * 0.0625


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ('"cosine"', "solver.schedule must be a table, as in"),
        ('{ name = "cosin", rounds = 3 }', "solver.schedule.name 'cosin' is not known; did you mean 'cosine'?"),
        ("{ rounds = 3 }", "solver.schedule.name is missing"),
        ('{ name = "cosine" }', "solver.schedule.rounds is missing"),
        ('{ name = "cosine", round = 3 }', "solver.schedule.round is not known"),
        ('{ name = "cosine", rounds = 3, warmup = 3 }', "warmup below rounds"),
        ('{ name = "steps" }', "give either every"),
        ('{ name = "steps", at = [0] }', "a round of at must be a whole number of at least 1"),
        ('{ name = "steps", every = 2, factor = 0.0 }', "factor must be a finite number above 0"),
        ('{ name = "warmup", rounds = 0 }', "rounds must be a whole number of at least 1"),
    ],
)
def test_bad_schedules_get_one_sentence(schedule: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(SINGLE.replace("lr = 0.1", f"lr = 0.1\nschedule = {schedule}"))
    with pytest.raises(feddyn.InputError) as error:
        plans(read(tmp_path / "my.toml"))
    assert sentence in str(error.value)


def test_stacks_and_workers_and_more_rounds(logistic: torch.nn.Module, unbalanced: Stored, tmp_path: Path) -> None:
    solver = feddyn.SGD(0.4, epochs=1, batch_size=8, schedule=feddyn.Cosine(6, warmup=1))

    def run(rounds: int = 6, **more: Any) -> feddyn.Run:
        arguments: dict[str, Any] = {"participation": 4, "rounds": rounds, **more}
        return feddyn.simulate(logistic, unbalanced, feddyn.FedDyn(0.1), solver, **arguments)

    alone = run(workers=1, stack=1)
    assert run(workers=2, stack=1).history == alone.history
    together = run(stack=4).history[-1]["models"]["all"]["loss"]
    assert together == pytest.approx(alone.history[-1]["models"]["all"]["loss"], rel=1e-9)
    run(3, stack=1, out=tmp_path / "out")
    assert run(6, stack=1, out=tmp_path / "out", resume=True).history == alone.history
    with pytest.raises(feddyn.InputError, match=r"schedule must be one such as Cosine\(rounds=200\), not 'cosine'"):
        feddyn.SGD(0.1, epochs=1, schedule="cosine")  # type: ignore[arg-type]
