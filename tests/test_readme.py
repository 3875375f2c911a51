"""What README.md shows is what its commands print."""

import json
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from benchmarks.results import Results

from tests.pages import follow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
RESULTS = Results()


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


def test_how_much_more_fedavg_transmits_is_what_the_tables_have() -> None:
    ratios: dict[tuple[str, str], dict[float, float]] = {}
    for name in ("participation", "participation-1pct"):
        for one in RESULTS.compared(name):
            feddyn, fedavg = one.ours["feddyn"], one.ours["fedavg"]
            if feddyn and fedavg and feddyn.mean and fedavg.mean:
                ratios.setdefault((one.row, one.row.rpartition("-")[2]), {})[one.target] = fedavg.mean / feddyn.mean
    lower: dict[str, list[float]] = {}
    for (_, part), found in ratios.items():
        lower.setdefault(part, []).append(found[min(found)])
    full, tenth, few = (f"{min(lower[part]):.1f} to {max(lower[part]):.1f} times" for part in ("100", "10", "1"))
    words = " ".join(README.split())
    assert f"{full} as many models with all devices active, {tenth} with 10% and {few} with 1%" in words
    mnist = [found[min(found)] for (row, part), found in ratios.items() if part == "10" and row.startswith("mnist-")]
    assert f"on MNIST with 10% it is {min(mnist):.1f} to {max(mnist):.1f})" in words
    run = {part: {row.partition("-")[0] for row, other in ratios if other == part} for part in ("100", "10", "1")}
    everything = {"mnist", "shakespeare", "cifar10", "cifar100"}
    assert run == {"100": {"mnist"}, "10": {"mnist", "shakespeare"}, "1": everything}


def section(title: str) -> str:
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_method_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follow(section("A method of your own"), tmp_path, monkeypatch, capsys)


def test_the_setting_for_mnist_is_that_of_the_records_of_which_it_speaks() -> None:
    words = section("A setting for MNIST")
    found = re.search(r"```toml\n(.*?)```", words, re.DOTALL)
    counts = re.search(r"FedDyn takes (\d+) models transmitted and FedAvg (\d+)", words)
    times = re.search(r"at medians of ([\d.]+) and ([\d.]+) seconds per round", words)
    assert found
    assert counts
    assert times
    setting = tomllib.loads(found[1])
    for method, count, seconds in zip(setting["compare"], counts.groups(), times.groups(), strict=True):
        name = method["algorithm"]["name"]
        (record,) = (ROOT / "docs/results/records").glob(f"mnist-dirichlet0.3-100x0.1-{name}-s0-*")
        recorded = tomllib.loads((record / "setting.toml").read_text())
        ours = {
            "seed": setting["seed"],
            "participation": setting["participation"],
            "population": recorded["population"] | setting["population"],
            "model": recorded["model"] | setting["model"],
            "algorithm": method["algorithm"],
            "solver": {"name": "sgd"} | setting["solver"] | method.get("solver", {}),
        }
        assert ours == {key: recorded[key] for key in ours}
        rounds = map(json.loads, (record / "rounds.jsonl").read_text().splitlines())
        reached = (line for line in rounds if line["models"]["all"]["accuracy"] >= setting["target"]["value"])
        assert next(reached)["transmitted"] == int(count)
        spent = map(json.loads, (record / "timings.jsonl").read_text().splitlines())
        assert f"{statistics.median(line['seconds'] for line in spent if 'round' in line):.1f}" == seconds
