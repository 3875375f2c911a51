"""A small experiment on synthetic data, for what is made of the paper's."""

from feddyn.paper.catalogue import PaperRun
from feddyn.settings.documents import Document

ROUNDS = 8


def setting(method: str) -> Document:
    """A few devices, a linear model."""
    length = {"steps": 6} if method == "scaffold" else {"epochs": 2}
    numbers = {"feddyn": {"alpha": 0.1}, "fedprox": {"mu": 0.1}}.get(method, {})
    return {
        "rounds": ROUNDS,
        "participation": 0.5,
        "population": {"source": "synthetic", "kind": "type2", "devices": 6, "samples": 30},
        "model": {"name": "linear"},
        "algorithm": {"name": method, **numbers},
        "solver": {
            "name": "sgd",
            "lr": 0.1,
            "batch_size": 10,
            **length,
        },
        "evaluation": {"models": ["all"]},
    }


def job(method: str, row: str = "row", targets: tuple[float, ...] = ()) -> PaperRun:
    """A run of it."""
    return PaperRun(row, method, "tiny", setting(method), targets)
