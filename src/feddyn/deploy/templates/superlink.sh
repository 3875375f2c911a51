#!/bin/sh
# The SuperLink. It listens on loopback only: its Control API has no authentication, and whoever reaches it can run code
# on every site. Sites come in through proxy.sh.
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
. "$$here/environment.sh"
exec flower-superlink --host 127.0.0.1 --port $superlink --database "$$here/superlink.db" --enable-supernode-auth \
  --ssl-ca-certfile "$$here/ca.crt" --ssl-certfile "$$here/server.crt" --ssl-keyfile "$$here/server.key"
