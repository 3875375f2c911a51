"""A hook of MkDocs: the API reference, a page for each room of the public surface, made from the docstrings.

What is public is `feddyn.__all__`, `feddyn.flower.__all__` and the modules that texts point into.
"""

from collections import defaultdict
from collections.abc import Iterator

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import feddyn
import feddyn.flower

MODULES = ("data.partition", "data.reading", "data.transforms", "models.losses", "models.norms", "models.standardised")
"""Beside what can be imported from feddyn itself; all their public names."""
ENTRY = "::: {module}\n    options:\n      members: [{names}]\n      inherited_members: {inherited}\n"
INHERITING = ("runs", "views")
"""Rooms whose classes have much of what they are from others."""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page for each room, and one that lists all names."""
    package = griffe.load("feddyn", search_paths=["src"])
    rooms: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in public(package):
        target = package[name]
        target = target.final_target if target.is_alias else target
        rooms[target.path.split(".")[1]][target.module.path].append(target.name)
    for room, modules in rooms.items():
        files.append(File.generated(config, f"api/{room}.md", content=_page(package, room, modules)))
    files.append(File.generated(config, "api/index.md", content=_index(package)))


def public(package: griffe.Object | griffe.Alias) -> Iterator[str]:
    """The public names, as they are written after `feddyn.`."""
    yield from feddyn.__all__
    yield from (f"flower.{name}" for name in feddyn.flower.__all__)
    for module in MODULES:
        for name, member in package[module].members.items():
            if not member.is_alias and not name.startswith("_") and member.has_docstring:
                yield f"{module}.{name}"


def _page(package: griffe.Object | griffe.Alias, room: str, modules: dict[str, list[str]]) -> str:
    """A room: what it is, and its modules, the one that the others are made of first."""
    about = package[room].docstring
    alone = list(modules) == [f"feddyn.{room}"]  # then its text stands with the module
    parts = [f"# feddyn.{room}", *([about.value] if about and not alone else [])]
    for module in sorted(modules, key=lambda path: (not path.endswith(".base"), path)):
        inherited = str(room in INHERITING).lower()
        parts.append(ENTRY.format(module=module, names=", ".join(modules[module]), inherited=inherited))
    return "\n\n".join(parts)


def _index(package: griffe.Object | griffe.Alias) -> str:
    """All names with the first sentence of what they are."""
    rows = []
    for name in public(package):
        about = package[name].docstring
        sentence = " ".join(about.value.split("\n\n")[0].split()) if about else ""
        sentence = sentence.split(". ")[0].rstrip(".:").replace("|", r"\|")
        rows.append(f"| [`{name}`][feddyn.{name}] | {sentence} |")
    return "\n".join(["# API", "", "| `feddyn.` | what it is |", "| --- | --- |", *rows])
