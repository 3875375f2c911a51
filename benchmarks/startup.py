"""How long it takes until something happens: the command line's help, and the first round of a run."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

FEDDYN = Path(sys.executable).with_name("feddyn")


def help_seconds() -> float:
    start = time.perf_counter()
    subprocess.run([FEDDYN, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def first_round_seconds(setting: str) -> float:
    """From the start of `feddyn run` until its first round begins, which is when the record notes the time."""
    with tempfile.TemporaryDirectory() as place:
        file, out = Path(place) / "setting.toml", Path(place) / "out"
        file.write_text(setting, encoding="utf-8")
        start = time.perf_counter()
        run = subprocess.Popen([FEDDYN, "run", file, "--out", out], stdout=subprocess.DEVNULL)
        notes = out / "timings.jsonl"
        while not (notes.exists() and notes.stat().st_size) and run.poll() is None:
            time.sleep(0.002)
        seconds = time.perf_counter() - start
        if run.wait():
            raise SystemExit(f"the run to measure the start-up failed: {setting}")
    return seconds
