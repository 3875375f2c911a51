"""One HTML page with all of a report, that opens without a network: plotly.js, the data and our scripts are in it."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from feddyn.errors import FeddynError
from feddyn.reports.page_runs import Document, Section
from feddyn.views.differences import minor, short
from feddyn.views.drawing import COLORS, PALETTE
from feddyn.views.naming import MODELS
from feddyn.views.tables import Table

WEB = Path(__file__).parent / "web"
SCRIPTS = ("choice", "tables", "curves", "plot", "parallel", "devices", "runs", "main")
"""In the order in which they stand in the page."""


def data(
    sections: Sequence[Section], tables: Iterable[Table], keys: Sequence[str], about: str, missing: Sequence[str] = ()
) -> Document:
    """What the page shows; `keys` are the settings in which the runs differ, those that tell most first, `missing` says
    what was left out."""
    runs = {member.run["id"]: member.run for section in sections for member in section.members}
    groups = [
        {
            "name": section.name,
            "members": [{"run": one.run["id"], "label": one.label, "status": one.status} for one in section.members],
            "targets": list(section.targets),
            "swept": list(section.swept),
        }
        for section in sections
    ]
    return {
        "about": about,
        "missing": list(missing),
        "colors": COLORS,
        "palette": PALETTE,
        "models": MODELS,
        "keys": [{"key": key, "name": name, "minor": minor(key)} for key, name in short(keys).items()],
        "groups": groups,
        "runs": runs,
        "tables": [{"title": t.title, "columns": t.columns, "rows": t.rows, "notes": t.notes} for t in tables],
    }


def html(data: Document) -> str:
    """The page; needs the extra `report`."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise FeddynError("the page needs plotly: pip install 'feddyn[report]'") from None
    parts = {
        "/*STYLE*/": (WEB / "style.css").read_text(encoding="utf-8"),
        "/*PLOTLY*/": get_plotlyjs().replace("</script", "<\\/script"),
        # no text of a setting can end the element that it stands in
        "/*DATA*/": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "/*SCRIPT*/": "\n".join((WEB / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS),
    }
    page = (WEB / "page.html").read_text(encoding="utf-8")
    return re.sub("|".join(map(re.escape, parts)), lambda mark: parts[mark[0]], page)
