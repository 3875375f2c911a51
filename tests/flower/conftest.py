"""Deployments in one process, and on Flower where that is installed."""

import os

import pytest


@pytest.fixture(autouse=True)
def power_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncing to disk takes most of the time of these tests, and only a power failure would show that it was left out;
    the test of those keeps account of what was synced."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
