"""Records to look at, and the command line in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from tests.cli.test_run import call
from tests.settings.test_loading import SETTING

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two alphas by two seeds, and the devices' own figures."""
    home = tmp_path_factory.mktemp("records")
    for alpha in (0.1, 0.01):
        for seed in (0, 1):
            changed: dict[str, Any] = {"algorithm": {"name": "feddyn", "alpha": alpha}, "seed": seed}
            ((_, plan),) = plans({**SETTING, **changed, "evaluation": {"devices": True}})
            for _ in Simulation(plan, home / f"{alpha}-{seed}", workers=1):
                pass
    return home


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """The exit code of `feddyn WORDS`, and what it prints."""

    def run(*words: object) -> tuple[int, str, str]:
        code = call(*map(str, words), monkeypatch=monkeypatch)
        out, err = capsys.readouterr()
        return code, out, err

    return run
