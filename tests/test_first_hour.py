"""docs/first-hour.md, command by command: what it shows is what is printed, but for times and the last digits."""

from pathlib import Path

import pytest

from tests.pages import ROOT, follow


def test_the_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    follow((ROOT / "docs" / "first-hour.md").read_text(), tmp_path, monkeypatch, capsys)
    assert (tmp_path / "clinic" / "alphas.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "clinic").glob("runs/*/setting.toml"))) == 8
