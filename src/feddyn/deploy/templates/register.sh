#!/bin/sh
# Registers the sites whose public keys are in sites/NAME.pub, each under its name. Give names to register only those.
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
if [ $$# -eq 0 ]; then set -- "$$here"/sites/*.pub; else set -- $$(printf "$$here/sites/%s.pub " "$$@"); fi
for key in "$$@"; do
  flwr supernode register "$$key" local --name "$$(basename "$$key" .pub)" --format json
done
