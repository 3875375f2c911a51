"""A method, a solver, a model, data and a loss in files outside of the package, used from settings."""

import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from feddyn.errors import InputError
from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from feddyn.settings.code import Code
from feddyn.settings.documents import Document, read

METHOD = '''
from dataclasses import dataclass
from feddyn import Algorithm, Problem
from tools import mean

@dataclass(frozen=True)
class Pulled(Algorithm):
    """FedAvg without weights, pulled towards the server's model."""
    pull: float
    def server(self, theta): return {"theta": theta}
    def device(self, theta): return {}
    def broadcast(self, server): return server
    def problem(self, down, device, share): return Problem(down["theta"], None, self.pull, down["theta"])
    def report(self, down, device, share, found): return {}, {"theta": found.theta}
    def aggregate(self, server, total, count, devices): return {"theta": mean(total["theta"], count)}
    def weight(self, share): return 1.0
'''
TOOLS = "def mean(total, count):\n    return total / count\n"
PARTS = '''
import time
import numpy as np
import torch
from torch import nn
from feddyn import Population, Solution

class Descent:
    """So many steps along the whole gradient."""
    reports_path = False
    def __init__(self, lr: float, steps: int = 3, pause: float = 0.0):
        self.lr, self.steps, self.pause = lr, steps, pause
    def __call__(self, problem, work):
        theta = problem.start.clone()
        for _ in range(self.steps):
            work.theta.copy_(theta)
            theta -= self.lr * (work.gradient() + problem.prox * (theta - problem.center))
        time.sleep(self.pause)
        return Solution(theta)

class Net(nn.Module):
    def __init__(self, features: int, width: int = 4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, 1))
    def forward(self, x):
        return self.layers(x)

def waves(seed: int, devices: int = 4, samples: int = 9):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(devices * samples, 2)).astype(np.float32)
    y = np.sin(x.sum(1, keepdims=True))
    return Population.from_arrays(x, y, np.repeat(np.arange(devices), samples))

def drawn(seed: int, devices: int = 4):
    def make(device):
        x = np.random.default_rng([seed, device]).normal(size=(5, 2)).astype(np.float32)
        return x, (x[:, 0] > 0).astype(int)
    return Population.on_demand(make, [5] * devices, test=make(devices))

def cubic(output, target):
    return (output - target).abs().pow(3).mean()

def nothing(seed: int):
    return None

def fails(seed: int):
    return {}["samples"]

NUMBER = 3
'''
SETTING = """
seed = 2
rounds = 4
participation = 0.6
loss = "parts.py:cubic"
[population]
source = "parts.py:waves"
devices = 5
[model]
name = "parts.py:Net"
width = 3
[algorithm]
name = "method.py:Pulled"
pull = 0.1
[solver]
name = "parts.py:Descent"
lr = 0.1
"""
FILES = ("setting.toml", "rounds.jsonl", "models.safetensors", "summary.json", "code/parts.py", "code/tools.py")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with a setting and the code that it names."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in (("method.py", METHOD), ("tools.py", TOOLS), ("parts.py", PARTS), ("my.toml", SETTING)):
        (folder / name).write_text(text)
    return folder


def feddyn(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "feddyn", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120
    )


def document(**changes: Any) -> Document:
    """The setting, with some tables updated."""
    found = tomllib.loads(SETTING)
    for key, value in changes.items():
        found[key] = {**found[key], **value} if isinstance(value, dict) else value
    return found


def test_a_run_of_own_parts_goes_on_from_its_record_alone(mine: Path, tmp_path: Path) -> None:
    """Killed, and resumed in another folder after the files are gone: the record has what it needs."""
    slow = (
        (mine / "my.toml")
        .read_text()
        .replace("lr = 0.1", "lr = 0.1\npause = 0.05")
        .replace("rounds = 4", "rounds = 12")
    )
    (mine / "my.toml").write_text(slow)
    words = ["run", mine / "my.toml", "--out", "part", "--workers", "1", "--checkpoint-rounds", "1"]
    process = subprocess.Popen([sys.executable, "-m", "feddyn", *map(str, words)], cwd=tmp_path)
    file, end = tmp_path / "part" / "rounds.jsonl", time.monotonic() + 60
    while time.monotonic() < end and not (file.exists() and file.read_bytes().count(b"\n") >= 3):
        time.sleep(0.01)
    process.kill()
    process.wait(60)
    assert not (tmp_path / "part" / "summary.json").exists()
    done = feddyn("run", "my.toml", "--out", tmp_path / "whole", "--workers", "2", cwd=mine)
    assert done.returncode == 0, done.stderr
    assert "Pulled" in done.stdout
    shutil.rmtree(mine)
    done = feddyn("resume", "part", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in FILES:
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    again = feddyn("run", "whole/setting.toml", "--out", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again" / "rounds.jsonl").read_bytes() == file.read_bytes()
    setting = tomllib.loads((tmp_path / "whole" / "setting.toml").read_text())
    assert "needs" not in setting
    assert (setting["algorithm"], setting["loss"]) == ({"name": "method.py:Pulled", "pull": 0.1}, "parts.py:cubic")
    assert set(setting["code"]) == {"method.py", "parts.py", "tools.py"}
    assert str(tmp_path) not in (tmp_path / "whole" / "setting.toml").read_text()
    assert not list((tmp_path / "part" / "code").rglob("*.pyc"))


def test_changed_code_is_refused_and_named(mine: Path, tmp_path: Path) -> None:
    ((_, plan),) = plans(read(mine / "my.toml"), folder=mine)
    simulation = iter(Simulation(plan, tmp_path / "out", workers=1))
    next(simulation)
    simulation.close()
    kept = tmp_path / "out" / "code" / "tools.py"
    kept.write_text(kept.read_text() + "\n")
    with pytest.raises(InputError, match=r"out/code/tools.py has changed since the run was begun"):
        plans(read(tmp_path / "out" / "setting.toml"), folder=tmp_path / "out")
    (mine / "parts.py").write_text(PARTS.replace("pow(3)", "pow(4)"))
    setting = read(tmp_path / "out" / "setting.toml")
    with pytest.raises(InputError, match=r"mine/parts.py has changed"):
        plans(setting, folder=mine)


def test_a_comparison_goes_on_with_a_method_that_was_not_begun(mine: Path, tmp_path: Path) -> None:
    both = {**document(rounds=2), "compare": [{"algorithm": {"name": "fedprox", "mu": 0.1}}]}
    both["compare"].append({"algorithm": both.pop("algorithm")})
    (mine / "both.toml").write_text(tomli_w.dumps(both))
    assert feddyn("run", mine / "both.toml", "--out", "out", cwd=tmp_path).returncode == 0
    setting = tomllib.loads((tmp_path / "out" / "fedprox" / "setting.toml").read_text())
    assert set(setting["code"]) == {"parts.py"}  # only what this method needs
    shutil.rmtree(mine)
    shutil.copytree(tmp_path / "out" / "pulled", tmp_path / "kept")
    shutil.rmtree(tmp_path / "out" / "pulled")
    done = feddyn("resume", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in FILES:
        assert (tmp_path / "out" / "pulled" / name).read_bytes() == (tmp_path / "kept" / name).read_bytes()
    done = feddyn("report", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Pulled" in done.stdout


def test_a_search_over_a_parameter_of_an_own_method(mine: Path, tmp_path: Path) -> None:
    """All candidates are tried again when the code has changed, and best.toml runs anywhere."""
    space = "[sweep.space]\nalgorithm.pull = [0.1, 1.0]\n"
    (mine / "search.toml").write_text(SETTING.replace("rounds = 4", "rounds = 2") + space)
    for change, tried in (("", 2), ("", 2), ("# changed", 4)):
        (mine / "tools.py").write_text(TOOLS + change)
        done = feddyn("sweep", "mine/search.toml", "--out", "found", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len((tmp_path / "found" / "trials.jsonl").read_text().splitlines()) == tried
    assert "pull = 1" in done.stdout
    shutil.rmtree(mine)
    done = feddyn("run", "found/best.toml", "--out", "best", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_example_of_the_docs_runs(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    for name, kind in (("waves.py", "python"), ("waves.toml", "toml")):
        (tmp_path / name).write_text(text.partition(f"```{kind}\n# {name}")[2].partition("```")[0].partition("\n")[2])
    ((_, plan),) = plans(read(tmp_path / "waves.toml"), ["rounds=3"], folder=tmp_path)
    first, *_, last = Simulation(plan, workers=2)
    assert last["models"]["all"]["loss"] < first["models"]["all"]["loss"]


def test_ranks_run_own_parts_too(mine: Path, tmp_path: Path) -> None:
    one = feddyn("run", "my.toml", "--out", tmp_path / "one", cwd=mine)
    assert one.returncode == 0, one.stderr
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "feddyn", "run", "my.toml"]
    two = subprocess.run(
        [sys.executable, *words, "--out", str(tmp_path / "two")], cwd=mine, capture_output=True, text=True, timeout=240
    )
    assert two.returncode == 0, two.stderr
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_equal_code_gives_equal_settings_everywhere(mine: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "deep").mkdir(parents=True)
    for name in ("method.py", "tools.py", "parts.py"):
        shutil.copy(mine / name, there / "deep" / name)
    far = SETTING.replace("parts.py", str(there / "deep" / "parts.py")).replace("method.py", "deep/method.py")
    here = plans(tomllib.loads(SETTING), folder=mine)[0].plan
    other = plans(tomllib.loads(far), folder=there)[0].plan
    assert here.setting() == other.setting()


def test_modules_come_from_the_settings_folder_and_leave_no_trace(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine / "kit").mkdir()
    (mine / "kit" / "__init__.py").write_text("")
    (mine / "kit" / "nets.py").write_text("from .base import Net\n")
    base = "import torch\nclass Net(torch.nn.Linear):\n    def __init__(self): super().__init__(2, 1)\n"
    (mine / "kit" / "base.py").write_text(base)
    path, finders, before = list(sys.path), list(sys.meta_path), set(sys.modules)
    ((_, plan),) = plans(document() | {"model": {"name": "kit.nets:Net"}, "loss": "torch.nn:HuberLoss"}, folder=mine)
    assert {"kit/__init__.py", "kit/nets.py", "kit/base.py"} < set(plan.code)
    assert plan.setting()["loss"] == "torch.nn:HuberLoss"
    assert (sys.path, sys.meta_path) == (path, finders)
    assert not {name for name in set(sys.modules) - before if "kit" in name or "_feddyn" in name or name == "tools"}
    other = tmp_path / "other"
    shutil.copytree(mine, other)
    (other / "tools.py").write_text(TOOLS.replace("total / count", "2 * total / count"))
    assert plans(document(), folder=other)[0].plan.setting() != plans(document(), folder=mine)[0].plan.setting()
    monkeypatch.chdir(mine)
    assert plans(document(), folder=tmp_path)[0].plan.setting() == plans(document(), folder=mine)[0].plan.setting()


def test_an_own_model_is_seeded_and_sized_as_ours_are(mine: Path) -> None:
    def weights(**changes: Any) -> list[float]:
        model = plans(document(**changes), folder=mine)[0].plan.model
        return [float(p.detach().sum()) for p in model.parameters()]

    assert weights() == weights()
    assert weights() != weights(seed=3)
    wanted = document(population={"source": "parts.py:drawn"}, loss="cross-entropy") | {"model": {"name": "mlp"}}
    ((_, plan),) = plans({**wanted, "solver": {"lr": 0.1, "epochs": 1}}, folder=mine)
    assert plan.setting()["model"] == {"name": "mlp", "dtype": "float32", "features": 2, "classes": 2}
    *_, last = Simulation(plan, workers=1)
    assert "accuracy" in last["models"]["all"]


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("algorithm.name", "none.py:X", "algorithm.name: there is no file none.py in .*mine or .*"),
        ("algorithm.name", "no.such:X", "algorithm.name: there is no module no.such in .*mine, .* among .* installed"),
        ("algorithm.name", "method.py:Pushed", r"algorithm.name: method.py has no 'Pushed'; did you mean 'Pulled'\?"),
        ("algorithm.name", "method.py:", "algorithm.name 'method.py:' is no name: write .*"),
        ("algorithm.name", "parts.py:NUMBER", "algorithm.name: parts.py:NUMBER is no class or function, but a int"),
        ("algorithm.name", "parts.py:Net", "algorithm.pull is not known for algorithm 'parts.py:Net'; .*"),
        ("algorithm.name", "broken.py:X", r".* cannot be imported: ZeroDivisionError: .* \(broken.py, line 2\)"),
        ("algorithm.name", "typo.py:X", r"algorithm.name: typo.py cannot be imported: .*\(typo.py, line 1\)"),
        ("algorithm.name", "lost.py:X", r".* cannot be imported: No module named 'nowhere' \(lost.py, line 1\)"),
        ("algorithm.name", "leaves.py:X", r".* cannot be imported: SystemExit: 3 \(leaves.py, line 2\)"),
        ("algorithm.name", "empty.py:Thing", "algorithm.name: empty.py:Thing gives a Thing, which is no algorithm"),
        ("algorithm.pull", "1", "algorithm.pull must be a number, not '1'"),
        ("algorithm.pul", 1, r"algorithm.pul is not known for algorithm 'method.py:Pulled'; did you mean 'pull'\?"),
        ("solver.name", "empty.py:Thing", "solver.name: empty.py:Thing gives a Thing, which is no solver"),
        ("model.name", "empty.py:Thing", "model.name: empty.py:Thing gives a Thing, which is no torch.nn.Module"),
        (
            "population.source",
            "empty.py:Thing",
            "population.source: .* gives a Thing, which is no Population",
        ),
        ("loss", "parts.py:cubik", r"loss: parts.py has no 'cubik'; did you mean 'cubic'\?"),
        ("loss", "mze", r"loss 'mze' is not known; did you mean 'mse'\?.*"),
    ],
)
def test_what_is_wrong_with_a_name_is_one_sentence(mine: Path, key: str, value: object, sentence: str) -> None:
    (mine / "broken.py").write_text("x = 0\ny = 1 / x\n")
    (mine / "typo.py").write_text("class X(:\n")
    (mine / "lost.py").write_text("import nowhere\n")
    (mine / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    (mine / "empty.py").write_text("class Thing:\n    def __init__(self, **parameters): pass\n")
    table, _, name = key.rpartition(".")
    with pytest.raises(InputError) as error:
        plans(document(**{table or key: {name: value} if table else value}), folder=mine)
    assert re.fullmatch(sentence, str(error.value)), str(error.value)


def test_an_own_source_that_fails_says_where(mine: Path) -> None:
    wanted = document() | {"population": {"source": "parts.py:fails"}}
    with pytest.raises(InputError, match=r"cannot be made of {'seed': 2}: KeyError: 'samples' \(parts.py, line \d+\)"):
        plans(wanted, folder=mine)


def test_two_files_of_one_name_are_refused(mine: Path) -> None:
    (mine / "deep").mkdir()
    (mine / "deep" / "parts.py").write_text(PARTS + "\n")
    with pytest.raises(InputError, match="have one name in a record: rename one of them"):
        plans(document(loss="deep/parts.py:cubic"), folder=mine)


def test_names_can_be_resolved_one_by_one(mine: Path) -> None:
    code = Code(mine)
    assert code.resolve("tools.py:mean", "metric")(6, 3) == 2
    assert code.resolve("math:sqrt", "metric")(4) == 2
    assert set(code.hashes) == {"tools.py"}
