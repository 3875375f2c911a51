"""A real browser, for the page."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium: make browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="there is no Playwright: pip install 'feddyn[dev]'")
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", *(["--no-sandbox"] if os.getuid() == 0 else [])]
    with playwright.sync_playwright() as control:
        started = control.chromium.launch(executable_path=chromium, args=quiet)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Any:
    """A page that may take its time."""
    made = browser.new_page()
    made.set_default_timeout(0)
    return made
