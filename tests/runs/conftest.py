"""A run that nothing disturbs, with which disturbed ones are compared."""

import pytest

import feddyn
from tests.runs.test_resume import LAST, arguments, contents


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    feddyn.simulate(**arguments(), out=out, workers=1)
    assert sorted(file.name for file in (out / "checkpoint").iterdir()) == LAST
    return contents(out)
