"""`make bench`: feddyn against a hand-written loop, Flower, pfl and the machine itself, as ratios from one run.

Rounds of feddyn and of the bare loop are taken in turns, so that a machine that is slow for a while is slow for both.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.bare import Bare
from benchmarks.gemm import Peak, operations
from benchmarks.jobs import JOBS
from benchmarks.ours import Ours
from benchmarks.startup import first_round_seconds, help_seconds

ROUNDS = {"mlp": 12, "cnn": 6, "massive": 100, "lstm": 6}
IN_TURN = {"massive": 10}
"""Rounds that a contender runs before it is the next one's turn, where a round is too short to warm up the caches."""
WARM_UP = 2
PEERS = {"Flower": ("flwr", "benchmarks.flower"), "pfl": ("pfl", "benchmarks.pfl_research")}
PEER_JOBS = ("mlp", "massive")
SYNTHETIC = """
rounds = 1
participation = 0.1
[population]
source = "synthetic"
kind = "type1"
[model]
name = "linear"
[algorithm]
name = "feddyn"
alpha = 0.1
[solver]
lr = 0.1
epochs = 1
"""
MNIST = SYNTHETIC.replace('source = "synthetic"\nkind = "type1"', 'source = "mnist"').replace("linear", "mlp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", default=[*JOBS, "scale", "start-up"], help="only these")
    wanted = parser.parse_args().jobs
    cores = len(os.sched_getaffinity(0))
    print(f"{platform.processor() or platform.machine()}, {cores} cores, torch {torch.__version__}\n")
    print("| job | against | theirs | feddyn | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for name in [name for name in wanted if name in JOBS]:
        seconds = compare(name, cores)
        if name in PEER_JOBS:
            compare_with_peers(name, cores, seconds)
    if "scale" in wanted:
        scale()
    if "start-up" in wanted:
        start_up()


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def compare(name: str, cores: int) -> float:
    """A job in feddyn, in the bare loop with one process and with one a core; feddyn's median seconds a round."""
    contenders: dict[str, Any] = {
        "feddyn": Ours(name, cores),
        "bare loop, 1 process": Bare(name, 1),
        f"bare loop, {cores} processes": Bare(name, cores),
    }
    peak, rates = Peak(cores) if name == "cnn" else None, list[float]()
    training = list[float]()
    step = contenders["feddyn"].simulation.federation.step
    contenders["feddyn"].simulation.federation.step = _timed(step, training)
    seconds: dict[str, list[float]] = {who: [] for who in contenders}
    in_turn = IN_TURN.get(name, 1)
    for turn in range(ROUNDS[name] // in_turn + WARM_UP):
        for who, contender in contenders.items():
            for _ in range(in_turn):
                start = time.perf_counter()
                contender.round()
                if turn >= WARM_UP:
                    seconds[who].append(time.perf_counter() - start)
        if peak:
            rates.append(peak.rate())
    for contender in [*contenders.values(), *([peak] if peak else [])]:
        contender.close()
    ours = statistics.median(seconds["feddyn"])
    for who, times in seconds.items():
        if who != "feddyn":
            theirs = statistics.median(times)
            ratio = ours / theirs
            row(name, who, _time(theirs), _time(ours), f"{ratio:.2f}" if ratio > 0.2 else f"1 / {1 / ratio:.1f}")
    if peak:
        used, possible = operations(name) / statistics.median(training[WARM_UP:]), statistics.median(rates)
        figures = [f"{rate / 1e9:.0f} GFLOP/s" for rate in (possible, used)]
        row(name, f"matrix products in {cores} processes", *figures, f"{used / possible:.0%}")
    command = [sys.executable, "-m", "benchmarks.footprint"]
    theirs, mine = (_last_line([*command, who, name, str(cores)])["peak_bytes"] for who in ("bare", "ours"))
    row(name, f"memory of the bare loop, {cores} processes", _size(theirs), _size(mine), f"{mine / theirs:.2f}")
    return ours


def _timed(step: Any, into: list[float]) -> Any:
    def timed(*arguments: Any) -> Any:
        start = time.perf_counter()
        result = step(*arguments)
        into.append(time.perf_counter() - start)
        return result

    return timed


def compare_with_peers(name: str, cores: int, ours: float) -> None:
    """Flower and pfl in processes of their own, each as its guide advises."""
    rounds = 10 if name == "mlp" else 20
    for who, (package, module) in PEERS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{who} is not installed: pip install -c constraints.txt '.[bench]'")
            continue
        command = [sys.executable]
        if who == "pfl":
            command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={cores}"]
        found = _last_line([*command, "-m", module, name, str(rounds)])
        theirs = statistics.median(found["seconds"])
        row(
            name, f"{who}, FedAvg, {_size(found['peak_bytes'])}", _time(theirs), _time(ours), f"1 / {theirs / ours:.1f}"
        )


def scale() -> None:
    million = _last_line([sys.executable, "-m", "benchmarks.scale", "devices"])
    row(
        "massive, data on demand",
        "1,000 devices : 1,000,000 devices",
        _time(million["small"]),
        _time(million["large"]),
        f"{million['large'] / million['small']:.2f}",
    )
    row("massive, data on demand", "memory", "", _size(million["peak_bytes"]), "")
    states = _last_line([sys.executable, "-m", "benchmarks.scale", "states"])
    kept, peak = _size(states["kept_bytes"]), _size(states["peak_bytes"])
    row("CNN states of 1,000 devices", f"memory; {kept} kept with a budget of 1 GB", "", peak, "")


def start_up() -> None:
    runs: dict[str, Sequence[float]] = {
        "feddyn --help": [help_seconds() for _ in range(7)],
        "feddyn run to its first round, synthetic": [first_round_seconds(SYNTHETIC) for _ in range(5)],
    }
    if "FEDDYN_DATA" in os.environ:
        runs["feddyn run to its first round, MNIST"] = [first_round_seconds(MNIST) for _ in range(6)][1:]
    for what, times in runs.items():
        row("start-up", what, "", _time(statistics.median(times)), "")


def _last_line(command: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _size(count: float) -> str:
    return f"{count / 1e9:.2f} GB"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


if __name__ == "__main__":
    main()
