"""An extension of Griffe: docstrings of the house as Markdown.

They are Markdown but for two things: a line that begins with the names of parameters and a colon says what these are
(here it becomes an item of a list), and examples stand as they are typed (here they become code).
"""

import re
from typing import Any

import griffe

NAMED = re.compile(r"(?:^|(?<=[.;] ))((?:\w+, )*\w+): ", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*\n(?:.+\n?)*", re.MULTILINE)


class Markdown(griffe.Extension):
    """Rewrites the docstrings of everything that is collected."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Of a function the parameters are its own, of a class those of its `__init__` or its fields."""
        if obj.docstring:
            known = {parameter.name for parameter in getattr(obj, "parameters", ())} | set(obj.members)
            obj.docstring.value = markdown(obj.docstring.value, known)


def markdown(text: str, known: set[str]) -> str:
    """A docstring as Markdown; `known` are names that it may explain."""

    def item(found: re.Match[str]) -> str:
        names = found[1].split(", ")
        if not known.issuperset(names):
            return found[0]
        return "\n- " + ", ".join(f"`{name}`" for name in names) + ": "

    paragraphs = []
    for paragraph in EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text).split("\n\n"):
        found = paragraph if paragraph.startswith(("```", "    ")) else NAMED.sub(item, paragraph)
        paragraphs.append(found.lstrip("\n").replace("\n- ", "\n\n- ", 1))
    return "\n\n".join(paragraphs)
