#!/bin/sh
# Takes the key of a site away, for good: ./unregister.sh NAME. The site is refused until another key is registered
# under its name (put it into sites/NAME.pub afterwards; ./register.sh NAME); with that it goes on with its state.
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
. "$$here/control.sh"
name="$${1:?give the name of a site}"
if [ ! -s "$$here/sites/$$name.node" ]; then
  printf '%s\n' "no site $$name was registered from this folder: there is no $$here/sites/$$name.node" >&2
  exit 1
fi
ask supernode unregister "$$(cat "$$here/sites/$$name.node")" local
if [ -e "$$here/sites/$$name.pub" ]; then mv "$$here/sites/$$name.pub" "$$here/sites/$$name.pub.unregistered"; fi
rm "$$here/sites/$$name.node"
