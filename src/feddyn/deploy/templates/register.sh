#!/bin/sh
# Registers the sites whose public keys are in sites/NAME.pub, each under its name; those that are registered stay so.
# Give names to register only those.
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
. "$$here/control.sh"
if [ $$# -eq 0 ]; then for key in "$$here"/sites/*.pub; do set -- "$$@" "$$(basename "$$key" .pub)"; done; fi
failed=0
for name in "$$@"; do
  if [ ! -s "$$here/sites/$$name.pub" ]; then
    printf '%s\n' "there is no $$here/sites/$$name.pub: put the site's public key there" >&2
    failed=1
    continue
  fi
  ask supernode register "$$here/sites/$$name.pub" local --name "$$name"
  node=$$(printf '%s' "$$answer" | sed -n 's/.*"node-id": *"\{0,1\}\([0-9][0-9]*\).*/\1/p')
  if [ -n "$$node" ]; then printf '%s\n' "$$node" >"$$here/sites/$$name.node"; fi  # what unregister.sh needs
  if [ ! -s "$$here/sites/$$name.node" ]; then
    printf '%s\n' "Flower knows the key $$here/sites/$$name.pub, but it was not registered from this folder, or no longer" \
      "is: put another key there, since Flower takes none again that was unregistered; or, if this one is in use, its" \
      "number (flwr supernode list) into $$here/sites/$$name.node" >&2
    failed=1
  fi
done
exit $$failed
