"""Runs with a record where Linux's calls are not to be had: they are hidden from a process of its own."""

import subprocess
import sys
from pathlib import Path

from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from feddyn.settings.documents import read

HIDDEN = """
import mmap, os, signal, sys
import torch  # which uses them itself, on Linux
sys.modules["fcntl"] = None
for module, names in (
    (os, ("fork", "forkpty", "sched_getaffinity", "preadv", "pread", "pwritev", "pwrite", "sysconf", "sysconf_names")),
    (signal, ("pthread_sigmask", "sigwait", "sigpending", "pthread_kill")),
    (mmap, [name for name in dir(mmap) if name.startswith(("MAP_", "MADV_", "PROT_"))]),
):
    for name in names:
        delattr(module, name)
"""
COMMAND = HIDDEN + "from feddyn.cli import main\nmain()\n"
BEGIN = (
    HIDDEN
    + """
from pathlib import Path
import feddyn
from feddyn.settings.building import plans
from feddyn.settings.documents import read
run = iter(feddyn.Simulation(plans(read(Path("my.toml")))[0].plan, "part", checkpoint=feddyn.CheckpointEvery(rounds=1)))
next(run), next(run)
print("begun", flush=True)
input()
"""
)
SETTING = """
rounds = 5
participation = 0.6
[population]
source = "synthetic"
kind = "type1"
devices = 6
samples = 8
[model]
name = "linear"
[algorithm]
name = "feddyn"
alpha = 0.1
[solver]
lr = 0.1
epochs = 1
batch_size = 4
"""


def feddyn(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", COMMAND, *words], cwd=cwd, capture_output=True, text=True, timeout=120)


def test_a_run_its_record_and_its_lock(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(SETTING)
    list(Simulation(plans(read(tmp_path / "my.toml"))[0].plan, tmp_path / "here"))
    done = feddyn("run", "my.toml", "--out", "there", "--state-memory", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first = subprocess.Popen(
        [sys.executable, "-c", BEGIN], cwd=tmp_path, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdout
    assert first.stdout.readline() == "begun\n"
    held = f"is in use by the process {first.pid}: wait for it, or if it is gone, remove {Path('part', 'lock.pid')}\n"
    assert feddyn("resume", "part", cwd=tmp_path).stderr == f"feddyn: the run in part {held}"
    first.kill()
    first.communicate()
    assert feddyn("resume", "part", cwd=tmp_path).stderr == f"feddyn: the run in part {held}"
    (tmp_path / "part" / "lock.pid").unlink()
    done = feddyn("resume", "part", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("setting.toml", "rounds.jsonl", "models.safetensors", "summary.json"):
        for record in ("there", "part"):
            assert (tmp_path / record / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    assert not [path for record in ("there", "part") for path in (tmp_path / record).glob("lock*")]
    done = feddyn("run", "my.toml", "--out", "more", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "workers = 2 needs Linux" in done.stderr
    assert len(done.stderr.splitlines()) == 1
