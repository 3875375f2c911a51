#!/bin/sh
# The way in for sites: TLS, and nothing but Flower's Fleet API (nginx.conf).
set -eu
here=$$(cd "$$(dirname "$$0")" && pwd)
mkdir -p "$$here/proxy"
# who is root stays it, since nobody else can read this folder; better be somebody else
if [ "$$(id -u)" = 0 ]; then as="user root;"; else as=""; fi
exec nginx -p "$$here" -e "$$here/proxy/error.log" -c "$$here/nginx.conf" -g "daemon off; $$as"
