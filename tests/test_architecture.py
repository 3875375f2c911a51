"""Imports point one way, and the public names are the documented ones."""

import ast
from pathlib import Path

import feddyn

SOURCE = Path(feddyn.__file__).parent
MAY_IMPORT = {
    "algorithms": {"checks", "errors", "identity"},
    "models": {"algorithms", "checks", "errors", "identity"},
    "data": {"checks", "errors", "identity"},
    "local": {"algorithms", "models", "data", "checks", "errors", "identity"},
    "simulation": {"algorithms", "models", "data", "local", "checks", "errors", "identity"},
    "theory": {"algorithms", "models", "data", "local", "simulation", "checks", "errors", "identity"},
    "experiments": {"algorithms", "models", "data", "local", "simulation", "checks", "errors", "identity"},
    "reports": {"data", "experiments", "theory", "checks", "errors", "identity"},
    "cli": {"data", "experiments", "theory", "reports", "simulation", "checks", "errors", "identity"},
}


def imported(file: Path) -> set[str]:
    """The rooms of feddyn that a file imports from."""
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text())):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        rooms |= {module.split(".")[1] for module in modules if module.startswith("feddyn.")}
    return rooms


def test_imports_point_one_way() -> None:
    for room, allowed in MAY_IMPORT.items():
        files = list((SOURCE / room).glob("*.py"))
        assert files
        for file in files:
            assert imported(file) <= allowed | {room}, file


def test_every_room_is_known() -> None:
    assert {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()} == set(MAY_IMPORT)


def test_the_public_names_are_shown_exist_and_are_known_to_type_checkers() -> None:
    assert dir(feddyn) == sorted(feddyn.__all__)
    for name in feddyn.__all__:
        assert getattr(feddyn, name) is not None
    tree = ast.parse(Path(feddyn.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    typed = {alias.name: node.module for node in imports for alias in node.names if alias.asname == alias.name}
    assert typed == feddyn._HOME


def test_only_the_command_line_prints() -> None:
    for file in SOURCE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        assert "print" not in names, file
