#!/usr/bin/env bash
# Installs the engines that the tests start: redis-server 7 or newer.
set -euo pipefail

least=7

redis_major() { redis-server --version | sed -E 's/.* v=([0-9]+)\..*/\1/'; }

if ! command -v redis-server >/dev/null; then
  if ! command -v apt-get >/dev/null; then
    echo "engines: redis-server is missing, and there is no apt-get here to install it with." >&2
    echo "engines: install Redis ${least} or newer, so that redis-server and redis-cli are on the PATH." >&2
    exit 1
  fi
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo"
  echo "engines: installing redis-server" >&2
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends redis-server >/dev/null
fi
if [ "$(redis_major)" -lt "$least" ]; then
  echo "engines: $(redis-server --version) is too old: Redis ${least} or newer is needed." >&2
  exit 1
fi
