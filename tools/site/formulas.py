"""A hook of MkDocs: formulas, which texts have in LaTeX, become MathML, which browsers show without any script."""

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
DISPLAYS = {"span": "inline", "div": "block"}


def on_page_content(html: str, **_: Any) -> str:
    """Convert what the extension arithmatex has marked; a command that the converter does not know ends the build."""

    def formula(found: re.Match[str]) -> str:
        made = convert(unescape(found[2]), display=DISPLAYS[found[1]])
        if "\\" in made:
            raise PluginError(f"a formula has a command that latex2mathml does not know: {unescape(found[2])}")
        return made

    return FORMULA.sub(formula, html)
