"""What all figures share: an empty one, the methods' colours, and labels in which nothing is a formula."""

from textwrap import shorten
from typing import TYPE_CHECKING, Any

from feddyn.errors import FeddynError
from feddyn.views.tables import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"FedDyn": "#c1272d", "SCAFFOLD": "#0071bc", "FedAvg": "#2e8b57", "FedProx": "#b8860b"}


LONGEST = 70
"""Characters of a label."""


def figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FeddynError("plots need matplotlib: pip install 'feddyn[report]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def legend(axes: "Axes", **how: Any) -> None:
    """Labels are anybody's: nothing in them is a formula."""
    for text in axes.legend(frameon=False, **how).get_texts():
        text.set_text(shorten(visible(text.get_text()), LONGEST, placeholder=" ..."))
        text.set_parse_math(False)
