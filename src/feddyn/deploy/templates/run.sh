#!/bin/sh
# Starts the server's app, or goes on with the federation after a crash: it is kept in ./federation. More terms of the
# run can follow, as in: ./run.sh 'rounds=50 least=2'
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
. "$$here/control.sh"
ask run "$$here/../app" local --run-config "out=\"$$here/federation\" $${1:-}"
