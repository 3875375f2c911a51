#!/bin/sh
# Registers the sites whose public keys are in sites/NAME.pub, each under its name; those that are registered stay so.
# Give names to register only those.
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
. "$$here/control.sh"
if [ $$# -eq 0 ]; then for key in "$$here"/sites/*.pub; do set -- "$$@" "$$(basename "$$key" .pub)"; done; fi
for name in "$$@"; do
  ask supernode register "$$here/sites/$$name.pub" local --name "$$name"
  node=$$(printf '%s' "$$answer" | sed -n 's/.*"node-id": *"\{0,1\}\([0-9][0-9]*\).*/\1/p')
  if [ -n "$$node" ]; then printf '%s\n' "$$node" >"$$here/sites/$$name.node"; fi  # what unregister.sh needs
done
