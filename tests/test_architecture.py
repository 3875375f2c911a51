"""Imports point one way, and the public names are the documented ones."""

import ast
import subprocess
import sys
from pathlib import Path

import feddyn

SOURCE = Path(feddyn.__file__).parent
LEAVES = {"batches", "checks", "errors", "origin"}
"""Modules that all may import, and that import each other alone."""
WORDS = {"__version__", "Metric"}
"""What may be imported from `feddyn` itself, as a user would."""
BASE = {"algorithms", "models", "data", "solvers", "metrics"}
MAY_IMPORT = {
    **{leaf: set[str]() for leaf in LEAVES},
    "identity": {"metrics"},
    "algorithms": set(),
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


def names(file: Path) -> set[str]:
    """The modules of feddyn, or names in them, that a file imports: room.module.name."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide where they lead"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.removeprefix("feddyn.") for name in found if name.startswith("feddyn.")}


def test_imports_point_one_way() -> None:
    for room, allowed in MAY_IMPORT.items():
        files = list((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]
        for file in files:
            rooms = {name.split(".")[0] for name in names(file) - WORDS}
            assert rooms <= allowed | LEAVES | {room}, file


def test_every_room_is_known() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"}
    assert rooms == set(MAY_IMPORT) | {"__init__", "__main__"}


def test_the_theory_that_is_used_does_not_need_its_verification() -> None:
    for file in (SOURCE / "theory").glob("*.py"):
        assert not any(name.startswith("theory.verification") for name in names(file)), file


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


def test_nothing_prints_but_the_command_line_and_progress() -> None:
    """By click, and by the progress that a simulation shows."""
    writers = {SOURCE / "runs" / "following.py", SOURCE / "views" / "progress.py"}
    for file in SOURCE.rglob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        said = {call.id for call in calls if isinstance(call, ast.Name)}
        said |= {ast.unparse(call) for call in calls if isinstance(call, ast.Attribute)}
        assert "print" not in said, file
        if "cli" not in file.parts and file not in writers:
            assert not said & {"click.echo", "sys.stdout.write", "sys.stderr.write"}, file
