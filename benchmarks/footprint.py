"""The memory of a job: `python -m benchmarks.footprint ours|bare JOB PROCESSES`; the last line printed is JSON."""

import json
import sys
from typing import Any

from benchmarks.bare import Bare
from benchmarks.memory import resident
from benchmarks.ours import Ours

ROUNDS = 3


def main(who: str, name: str, processes: int) -> None:
    contender: Any = Ours(name, processes) if who == "ours" else Bare(name, processes)
    peak = 0
    for _ in range(ROUNDS):
        contender.round()
        peak = max(peak, resident() or 0)
    contender.close()
    print(json.dumps({"peak_bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
