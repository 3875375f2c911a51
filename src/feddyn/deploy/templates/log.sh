#!/bin/sh
# What the server's app has said in a run: ./log.sh RUN, the number that run.sh printed. Without one: all runs.
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
. "$$here/control.sh"
export COLUMNS="$${COLUMNS:-200}"  # or a narrow table cuts off what became of a run
if [ $$# -eq 0 ]; then exec flwr list local; else exec flwr log "$$1" local --show; fi
