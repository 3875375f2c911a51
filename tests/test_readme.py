"""What README.md shows is what its commands print."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def printed(*words: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def test_the_example_prints_what_is_shown(tmp_path: Path) -> None:
    """Its figures are computed in float64 and rounded, so that no processor changes them."""
    found = re.search(r"own_model\.py\)\):\n\n```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
    assert found
    code, shown = found.groups()
    example = (ROOT / "examples" / "own_model.py").read_text()
    assert example.split('"""\n\n', 1)[1] == code
    assert printed("-c", code, cwd=tmp_path) == shown.rstrip()


def test_the_demo_prints_what_is_shown(tmp_path: Path) -> None:
    """It, too, is in float64, so that the counts do not depend on the processor."""
    found = re.search(r"\$ make demo .*?\n\.\.\.\n(models transmitted.*?)\n\$", README, re.DOTALL)
    assert found
    assert found[1] in printed("-m", "feddyn", "run", cwd=tmp_path)
