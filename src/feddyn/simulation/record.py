"""The record of a run: a directory that says everything about it, and that nothing ever overwrites.

setting.toml        complete: it alone repeats the run
rounds.jsonl        a line a round; the same bits for equal settings
timings.jsonl       everything that differs between two equal runs
summary.json        how it ended
models.safetensors  the three flat vectors after the last round
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w
import torch
from safetensors.torch import save

from feddyn.algorithms.base import Vector
from feddyn.errors import FeddynError, InputError

Setting: TypeAlias = dict[str, Any]
Line: TypeAlias = dict[str, Any]


def key(setting: Mapping[str, Any]) -> str:
    """Sixteen digits that stand for a setting; every field of it counts."""
    return hashlib.sha256(json.dumps(setting, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


def claim(directory: Path) -> Path:
    """Make a new directory for a record; one that is in use is refused."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise InputError(f"the output directory {directory} is in use: choose another one, or remove it yourself")
        if not os.access(directory, os.W_OK):
            raise PermissionError(13, "it is read-only")
    except OSError as error:
        raise InputError(f"the output directory {directory} cannot be used: {error.strerror}") from error
    return directory


class Record:
    """Writes a run down while it goes on; every line is on disk before the next round starts."""

    def __init__(self, directory: Path, setting: Setting):
        self.directory = claim(directory)
        text = tomli_w.dumps(setting)
        (directory / "setting.toml").write_text(f"# feddyn run {key(setting)}\n{text}", encoding="utf-8")
        self._rounds = (directory / "rounds.jsonl").open("x", encoding="utf-8")
        self._timings = (directory / "timings.jsonl").open("x", encoding="utf-8")
        self._clock = time.perf_counter()
        self._time(
            {
                "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "machine": platform.platform(),
                "python": platform.python_version(),
                "torch": torch.__version__,
            }
        )

    def line(self, line: Line) -> None:
        """Add a round."""
        now = time.perf_counter()
        try:
            self._rounds.write(json.dumps(line, allow_nan=False) + "\n")
            self._rounds.flush()
            self._time({"round": line["round"], "seconds": round(now - self._clock, 6)})
        except OSError as error:
            where = f"{self.directory} ({error.strerror})"
            raise FeddynError(f"round {line['round']} cannot be written to {where}; all before it are kept") from None
        self._clock = now

    def close(self, summary: Mapping[str, Any], models: Mapping[str, Vector]) -> None:
        """Write down how the run ended."""
        self._rounds.close()
        self._timings.close()
        vectors = {name: vector.cpu().contiguous().clone() for name, vector in models.items()}
        (self.directory / "models.safetensors").write_bytes(save(vectors))
        text = json.dumps(summary, indent=2, allow_nan=False)
        (self.directory / "summary.json").write_text(text + "\n", encoding="utf-8")

    def _time(self, line: Line) -> None:
        self._timings.write(json.dumps(line) + "\n")
        self._timings.flush()
