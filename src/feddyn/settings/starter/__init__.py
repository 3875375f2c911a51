"""A start for data, a model and a metric of one's own: a setting with comments, code and a small table, all of
which run as they are."""

import csv
import io
from pathlib import Path

import numpy as np

from feddyn.errors import InputError
from feddyn.records.files import write_whole

HOSPITALS = ("east", "harbour", "hill", "north", "south", "west")
ROWS = 150
"""Patients of each hospital."""


def write(directory: Path) -> list[Path]:
    """Write the files into a directory, which may have others; nothing is overwritten."""
    here = Path(__file__).parent
    files = {name: (here / name).read_bytes() for name in ("setting.toml", "model.py")}
    files["data.csv"] = patients().encode()
    paths = [directory / name for name in files]
    if there := next((path for path in paths if path.exists() or path.is_symlink()), None):
        raise InputError(f"{there} is there already: nothing is overwritten, choose another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(directory / name, [content])
    except OSError as error:
        raise InputError(f"the directory {directory} cannot be used: {error.strerror}") from None
    return paths


def patients() -> str:
    """An invented table, as CSV: hospitals whose patients differ in age and habits, and by how often they are ill."""
    rng = np.random.default_rng(0)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["hospital", "age", "sex", "smoker", "pressure", "cholesterol", "ill"])
    for k, hospital in enumerate(HOSPITALS):
        for _ in range(ROWS):
            age = int(np.clip(rng.normal(40 + 5 * k, 12), 18, 95))
            smoker = rng.random() < 0.15 + 0.1 * (k % 3)
            pressure = round(rng.normal(105 + 0.4 * age, 12))
            cholesterol = round(rng.normal(4.2 + 0.02 * age, 0.8), 1)
            risk = 0.09 * (age - 58) + 1.5 * smoker + 0.05 * (pressure - 128) + 0.8 * (cholesterol - 5.3)
            ill = rng.random() < 1 / (1 + np.exp(-risk))
            words = [("no", "yes")[int(flag)] for flag in (smoker, ill)]
            table.writerow([hospital, age, rng.choice(["f", "m"]), words[0], pressure, cholesterol, words[1]])
    return stream.getvalue()
