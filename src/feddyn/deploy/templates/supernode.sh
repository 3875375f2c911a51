#!/bin/sh
# The site $name. With FEDDYN_WARM=1 its apps start warm, and it looks for messages more often.
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
export FEDDYN_WARM_HOME="$${FEDDYN_WARM_HOME:-$$here/warm}"
if [ "$${FEDDYN_WARM:-0}" = 1 ]; then set -- python3 -m feddyn.deploy.warm supernode; else set -- flower-supernode; fi
exec "$$@" --superlink $address:$port --root-certificates "$$here/ca.crt" \
  --auth-supernode-private-key "$$here/site.key" --host 127.0.0.1 --port $runtime \
  --node-config "partition-id=$number state-dir=\"$$here/state\""
