"""Compressed uploads and downloads: what records of runs transmitted until they reached an accuracy, and what encoding
and decoding cost.

    python -m benchmarks.compression table 0.972 DIR...     # a row a run, beside the uncompressed ones among them
    python -m benchmarks.compression speed                  # rounds of the mlp job, with and without
"""

import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import feddyn
from benchmarks.jobs import JOBS
from benchmarks.ours import plan, population
from feddyn.engine.memory import keep_freed_memory
from feddyn.records.reader import RunRecord, find

FOUR = feddyn.Quantized(4)
CODES: Mapping[str, feddyn.Compressor | None] = {
    "none": None,
    "8 bits": feddyn.Quantized(8),
    "4 bits": FOUR,
    "4 bits, step 2": feddyn.Quantized(4, step=2.0),
    "2 bits": feddyn.Quantized(2),
    "top 10% of 4 bits": feddyn.TopK(0.1, FOUR),
}
METHODS = {"feddyn": "FedDyn", "fedavg": "FedAvg"}
ROUNDS = 40
"""Of each, in turns: as many as a device is away for in the mean, and some more."""


def table(target: float, directories: Sequence[Path]) -> str:
    """Bytes until the mean of all devices has an accuracy, by split, seed and method, in Markdown."""
    rows: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    records = [record for record in find(directories)[0] if record.setting["algorithm"]["name"] in METHODS]
    compressed = {_where(record) for record in records if _wires(record) != "none"}
    for record in (record for record in records if _where(record) in compressed):
        line = next((line for line in record.evaluated if line["models"]["all"]["accuracy"] >= target), None)
        if line is not None:
            rows[(*_where(record), record.setting["algorithm"]["name"], _wires(record))] = line
    head = ["split, seed", "method", "up and down", "rounds", "MB up", "MB down", "MB in all"]
    head += [f"1 / of {name}'s" for name in METHODS.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for (*where, method, wires), line in sorted(rows.items(), key=str):
        total = line["bytes_up"] + line["bytes_down"]
        ratios = []
        for other in METHODS:
            plain = rows.get((*where, other, "none"))
            ratios.append("-" if plain is None else f"{(plain['bytes_up'] + plain['bytes_down']) / total:.1f}")
        volume = [f"{number / 1e6:.1f}" for number in (line["bytes_up"], line["bytes_down"], total)]
        cells = [f"{where[2]}, {where[3]}", METHODS[method], wires, str(line["round"]), *volume, *ratios]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _where(record: RunRecord) -> tuple[str, float, str, int]:
    """What runs have to share to be compared: the data, the participation, the split and the seed."""
    setting, population = record.setting, record.setting["population"]
    split = f"Dirichlet {population['concentration']}" if population.get("split") == "dirichlet" else "IID"
    return population["source"], setting["participation"], split, setting["seed"]


def _wires(record: RunRecord) -> str:
    """How a run compressed, in words."""
    found = [_words(record.setting[name]) for name in ("uplink", "downlink") if name in record.setting]
    return "none" if not found else found[0] if len(set(found)) == 1 and len(found) == 2 else " / ".join(found)


def _words(wire: Mapping[str, Any]) -> str:
    if wire["name"] == "quantized":
        return f"{wire['bits']} bits" + (f", step {wire['step']:g}" if "step" in wire else "")
    kind = {"topk": "top", "randomk": "random"}[wire["name"]]
    return f"{kind} {wire['fraction']:.0%}" + (f" of {_words(wire['values'])}" if "values" in wire else "")


def speed() -> str:
    """Processor time of a round of the mlp job in one process, by compressor, rounds taken in turns. As in workers,
    memory that is freed is kept."""
    keep_freed_memory()
    job = JOBS["mlp"]
    people = population("mlp", job)
    plans = {name: replace(plan("mlp", job, people), uplink=code, downlink=code) for name, code in CODES.items()}
    running = {name: iter(feddyn.Simulation(one, workers=1)) for name, one in plans.items()}
    times: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(ROUNDS):
        for name, rounds in running.items():
            start = time.process_time()
            next(rounds)
            times[name].append(time.process_time() - start)
    half = {name: statistics.median(found[ROUNDS // 2 :]) for name, found in times.items()}
    lines = ["| up and down | processor time a round | more |", "| --- | --- | --- |"]
    lines += [f"| {name} | {1e3 * t:.0f} ms | {t / half['none'] - 1:.1%} |" for name, t in half.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["speed"]:
        sys.stdout.write(speed() + "\n")
    else:
        sys.stdout.write(table(float(sys.argv[2]), [Path(name) for name in sys.argv[3:]]) + "\n")
