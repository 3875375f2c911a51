"""Several ranks under torchrun, on this machine and in network namespaces: the same bits as one process."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.cases import cases, outcome

HERE = Path(__file__)
ROOT = HERE.parents[2]
MODULE = "tests.engine.cases"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
SETTING = """
rounds = 3
participation = 6
cohort = 1
[population]
source = "synthetic"
kind = "type2"
devices = 12
samples = 20
[model]
name = "linear"
[algorithm]
name = "feddyn"
alpha = {alpha}
[solver]
lr = 0.1
epochs = 2
batch_size = 5
"""


def run(*words: str, cwd: Path = ROOT, prefix: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    command = [*prefix, *TORCHRUN, *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    return {name: outcome({**arguments, "workers": 1}) for name, arguments in cases().items()}


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_number_of_ranks_does_not_change_a_bit(ranks: int, alone: dict[str, str], tmp_path: Path) -> None:
    done = run("--standalone", f"--nproc-per-node={ranks}", "-m", MODULE, str(tmp_path / "found.json"))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "found.json").read_text()) == alone


def test_the_command_line_keeps_one_record(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(SETTING.format(alpha=0.1))
    done = run("--standalone", "--nproc-per-node=2", "-m", "feddyn", "run", "my.toml", "--out", "two", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("record, table and plot") == 1
    command = [sys.executable, "-m", "feddyn", "run", "my.toml", "--out", "one", "--workers", "1"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    for name in ("setting.toml", "rounds.jsonl", "models.safetensors", "summary.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


LATE = """
import os, sys, time
import feddyn.cli

module = sys.modules["feddyn.cli.run"]
main, conclude = feddyn.cli.cli.main, module._conclude

def late():
    if os.environ["RANK"] == os.environ["LATE"]:
        time.sleep(1)

def end_late(**more):
    try:
        main(**more)
    except Exception:
        late()
        raise

def conclude_late(*arguments):
    late()
    conclude(*arguments)

feddyn.cli.cli.main, module._conclude = end_late, conclude_late
sys.argv = ["feddyn", "run", os.environ["RANK"] + ".toml", "--out", "out", *sys.argv[1:]]
feddyn.cli.main()
"""
"""A setting for each rank, one of which is late to end: if the other one does not wait, torchrun ends the late one."""


def said(late: int, cwd: Path, *words: str) -> list[str]:
    """What two ranks, of which one is late, say when they fail."""
    (cwd / "start.py").write_text(LATE)
    done = run("--standalone", "--nproc-per-node=2", "start.py", *words, cwd=cwd, LATE=str(late))
    assert done.returncode != 0
    assert "KeyboardInterrupt" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("feddyn:")]


def test_ranks_that_do_not_agree_are_refused_in_one_sentence(tmp_path: Path) -> None:
    """The second rank has another alpha."""
    for rank in range(2):
        (tmp_path / f"{rank}.toml").write_text(SETTING.format(alpha=0.1 + rank))
    (sentence,) = said(0, tmp_path)
    assert "the ranks do not run the same simulation: rank 1 differs from rank 0" in sentence
    assert not (tmp_path / "out").exists()


def test_what_one_rank_alone_cannot_read_is_said_once(tmp_path: Path) -> None:
    """The second rank has no setting; the first has one with a target, which it has to compute."""
    (tmp_path / "0.toml").write_text(SETTING.format(alpha=0.1) + "[target]\ngap = 0.05\n")
    (sentence,) = said(1, tmp_path)
    assert sentence.startswith("feddyn: there is no settings file 1.toml")


@pytest.mark.parametrize("late", [0, 1])
def test_divergence_ends_all_ranks_in_the_sentence_of_one_process(late: int, tmp_path: Path) -> None:
    """All have a step size with which every device diverges; what a run leaves behind is written before they end."""
    for rank in range(2):
        (tmp_path / f"{rank}.toml").write_text(SETTING.format(alpha=0.1))
    (sentence,) = said(late, tmp_path, "--set", "solver.lr=1e30")
    assert "diverged in round 1" in sentence
    command = [sys.executable, "-m", "feddyn", "run", "0.toml", "--out", "one", "--set", "solver.lr=1e30"]
    one = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert one.stderr.strip() == sentence
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["status"] == "diverged"
    for name in ("table.md", "convergence.png"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_a_rank_that_fails_alone_takes_the_others_along(tmp_path: Path) -> None:
    """The first rank alone finds its directory in use; the script goes on to the next run, and so do all ranks. The
    second run is interrupted and resumed."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "something").write_text("here")
    (tmp_path / "start.py").write_text(
        "import feddyn\n"
        "from tests.engine.cases import cases\n"
        "case = {**cases()['feddyn one by one'], 'checkpoint': feddyn.CheckpointEvery(rounds=1)}\n"
        "for out in ('used', 'free'):\n"
        "    try:\n"
        "        feddyn.simulate(**{**case, 'rounds': 6}, out=out, resume=True)\n"
        "    except feddyn.FeddynError as error:\n"
        "        print(type(error).__name__, error)\n"
        "plan = feddyn.Plan(**{k: v for k, v in case.items() if k != 'checkpoint'})\n"
        "for line in feddyn.Simulation(plan, 'part', checkpoint=feddyn.CheckpointEvery(rounds=1)):\n"
        "    if line['round'] == 2:\n"
        "        break\n"
        "del line\n"
        "feddyn.simulate(**case, out='part', resume=True)\n"
        "feddyn.simulate(**case, out='whole')\n"
        "feddyn.simulate(**{**case, 'rounds': 2}, out='more')\n"
        "feddyn.simulate(**case, out='more', resume=True)\n"
    )
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    done = run("--standalone", "--nproc-per-node=2", "start.py", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the output directory used is not empty") == 2
    assert json.loads((tmp_path / "free" / "summary.json").read_text())["status"] == "finished"
    for name in ("rounds.jsonl", "models.safetensors", "summary.json"):
        for out in ("part", "more"):  # interrupted, and extended by more rounds
            assert (tmp_path / out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.fixture
def hosts() -> Iterator[list[tuple[str, str]]]:
    """Two hosts on a network of their own, and what each calls its end of the link."""
    names, link = [f"feddyn{os.getpid()}{end}" for end in "ab"], [f"fd{os.getpid() % 10**6}{end}" for end in "ab"]
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    steps = [f"ip netns add {name}" for name in names]
    steps += [f"ip link add {link[0]} netns {names[0]} type veth peer name {link[1]} netns {names[1]}"]
    for number, (name, end) in enumerate(zip(names, link, strict=True), 1):
        steps += [f"ip -n {name} addr add 10.77.0.{number}/24 dev {end}", f"ip -n {name} link set {end} up"]
        steps += [f"ip -n {name} link set lo up"]
    try:
        for step in steps:
            done = subprocess.run(step.split(), capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"network namespaces cannot be made here: {done.stderr.strip()}")
        yield list(zip(names, link, strict=True))
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def test_two_hosts_that_meet_only_over_the_network(
    hosts: list[tuple[str, str]], alone: dict[str, str], tmp_path: Path
) -> None:
    """Each has an address and a loopback of its own, and two ranks."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = []
    for number, (host, link) in enumerate(hosts):
        words = ["--nnodes=2", "--nproc-per-node=2", f"--node-rank={number}", "--master-addr=10.77.0.1"]
        words += ["--master-port=29511", "-m", MODULE, str(tmp_path / f"{number}.json")]
        more = {"GLOO_SOCKET_IFNAME": link}
        command = ["ip", "netns", "exec", host, *TORCHRUN, *words]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment | more, stdout=pipe, stderr=pipe, text=True))
    ends = [process.communicate(timeout=900) for process in started]
    assert [process.returncode for process in started] == [0, 0], ends
    assert json.loads((tmp_path / "0.json").read_text()) == alone
