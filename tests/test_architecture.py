"""Imports point one way, and the public names are the documented ones."""

import ast
import subprocess
import sys
from pathlib import Path

import feddyn

SOURCE = Path(feddyn.__file__).parent
LEAVES = {"batches", "checks", "errors", "origin"}
BASE = {"algorithms", "models", "data", "solvers", "metrics"}
MAY_IMPORT = {
    "algorithms": set[str](),
    "metrics": set(),
    "records": {"metrics"},
    "views": {"metrics", "records"},
    "doctor": {"metrics", "records", "views"},
    "models": {"algorithms"},
    "data": {"identity"},
    "wire": {"algorithms"},
    "solvers": {"algorithms", "models", "data"},
    "round": BASE,
    "engine": BASE | {"round", "wire"},
    "flower": BASE | {"round", "wire", "records", "identity"},
    "runs": BASE | {"round", "wire", "engine", "records", "views", "identity"},
    "settings": BASE | {"round", "wire", "engine", "flower", "runs", "records", "identity"},
    "deploy": {"flower", "records", "runs", "settings", "views"},
    "search": BASE | {"round", "engine", "runs", "settings", "records"},
    "paper": BASE | {"round", "engine", "runs", "settings", "search", "records"},
    "theory": {"algorithms", "models", "data", "solvers", "round", "engine"},
    "reports": {"data", "metrics", "records", "views", "settings", "search", "paper", "theory"},
    "cli": {
        *("data", "metrics", "round", "engine", "runs", "records", "views", "settings", "search", "paper", "theory"),
        *("reports", "doctor", "deploy"),
    },
}
"""What a room may import besides itself and the leaves."""


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
        files = list((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]
        for file in files:
            assert imported(file) <= allowed | LEAVES | {room}, file


def test_every_room_is_known() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"}
    assert rooms == set(MAY_IMPORT) | LEAVES | {"identity", "__init__", "__main__"}


def test_the_theory_that_is_used_does_not_need_its_verification() -> None:
    for file in (SOURCE / "theory").glob("*.py"):
        assert "theory.verification import" not in file.read_text(), file


def test_records_metrics_and_a_site_that_does_not_train_need_no_torch() -> None:
    rooms = "feddyn.records.reader, feddyn.records.comparison, feddyn.flower.device, feddyn.flower.ledger"
    words = f"import sys; import {rooms}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", words], check=True)


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
