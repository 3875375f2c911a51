"""Convergence curves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddyn.errors import FeddynError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {"FedDyn": "#c1272d", "SCAFFOLD": "#0071bc", "FedAvg": "#2e8b57", "FedProx": "#b8860b"}


def convergence(
    histories: Mapping[str, Sequence[Mapping[str, Any]]],
    path: Path,
    *,
    metric: str,
    model: str = "all",
    target: float | None = None,
) -> None:
    """A metric over the models transmitted, one curve a method, to a PNG or PDF file; needs the extra `report`."""
    canvas = figure(6.4, 4.2)
    axes = canvas.add_subplot()
    for label, history in histories.items():
        lines = [line for line in history if "models" in line]
        axes.plot(
            [line["transmitted"] for line in lines],
            [line["models"][model][metric] for line in lines],
            label=label,
            color=COLORS.get(label),
            linewidth=1.4,
            linestyle="--" if label == "FedProx" else "-",  # it often lies on FedAvg's curve
        )
    if target is not None:
        axes.axhline(target, color="0.4", linewidth=0.8, linestyle="--", label="target")
    if metric != "accuracy":
        axes.set_yscale("log")
    axes.set_xlabel("models transmitted, relative to one round of FedAvg")
    axes.set_ylabel({"objective": "training objective", "loss": "loss", "accuracy": "accuracy"}[metric])
    axes.grid(visible=True, which="both", linewidth=0.3, alpha=0.6)
    axes.legend(frameon=False)
    canvas.savefig(path, dpi=150)


def figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FeddynError("plots need matplotlib: pip install 'feddyn[report]'") from None
    return Figure(figsize=(width, height), layout="constrained")
