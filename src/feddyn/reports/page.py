"""One HTML page with everything of a report, that opens without a network: plotly.js, the data and our script in it."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from feddyn.errors import FeddynError
from feddyn.reports.records import Curve, Group
from feddyn.views.differences import flat, short, words
from feddyn.views.drawing import COLORS
from feddyn.views.tables import Table, duration


def write(path: Path, groups: Sequence[Group], tables: Sequence[Table], about: str) -> None:
    """Write the page; needs the extra `report`."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise FeddynError("the page needs plotly: pip install 'feddyn[report]'") from None
    runs: dict[tuple[Path, str, str], dict[str, Any]] = {}
    places = []
    for group in groups:
        numbers = []
        for curve in group.curves:
            key = (curve.record.path, curve.label, curve.status)
            if key not in runs:
                runs[key] = {"number": len(runs), **_run(curve)}
            numbers.append(runs[key]["number"])
        keys = [{"key": key, "name": name} for key, name in short(group.keys).items()]
        places.append({"name": group.name, "runs": numbers, "targets": list(group.targets), "keys": keys})
    tabled = [{"title": t.title, "columns": t.columns, "rows": t.rows, "notes": t.notes} for t in tables]
    data = {"about": about, "colors": COLORS, "groups": places, "runs": list(runs.values()), "tables": tabled}
    room = Path(__file__).parent
    page = (room / "page.html").read_text(encoding="utf-8")
    parts = {
        "/*PLOTLY*/": get_plotlyjs().replace("</script", "<\\/script"),
        # no text of a setting can end the element that it stands in
        "/*DATA*/": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "/*SCRIPT*/": (room / "page.js").read_text(encoding="utf-8"),
    }
    page = re.sub("|".join(map(re.escape, parts)), lambda mark: parts[mark[0]], page)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def _run(curve: Curve) -> dict[str, Any]:
    record = curve.record
    columns = {name: [_short(value) for value in values] for name, values in record.columns.items()}
    columns["bytes"] = [line["bytes_up"] + line["bytes_down"] for line in record.history]
    model, metric = record.headline
    return {
        "label": curve.label,
        "seed": curve.seed,
        "status": curve.status,
        "rounds": len(record.history),
        "figure": f"{model} {metric}",
        "last": f"{record.figures[-1]:.4f}",
        "best": f"{record.best:.4f}",
        "time": duration(record.seconds),
        "seconds": record.seconds,
        "name": record.path.name,
        "setting": record.text,
        "values": {key: words(key, value) for key, value in flat(record.setting).items()},
        "metrics": [name for name in columns if "." in name],
        "series": columns,
    }


def _short(value: float | None) -> float | None:
    """Six digits are enough to be drawn."""
    return value if value is None or isinstance(value, int) else float(f"{value:.6g}")
