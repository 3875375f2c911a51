"""Deployments in one process, and on Flower where that is installed."""

import os

import pytest

from feddyn.data.stored import Stored
from tests.conftest import make_logistic


@pytest.fixture
def few() -> Stored:
    """Three unequal devices, in float64."""
    return make_logistic([10, 24, 15])


@pytest.fixture(autouse=True)
def power_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncing to disk takes most of the time of these tests, and only a power failure would show that it was left out;
    the test of those keeps account of what was synced."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
