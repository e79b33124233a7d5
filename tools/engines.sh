#!/usr/bin/env bash
# Installs the engines that the tests start: redis-server 7 or newer, and
# dynalite, which stands in for DynamoDB, in the version of package-lock.json.
set -euo pipefail

least=7
least_node=20
tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

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

for program in node npm; do
  if ! command -v "$program" >/dev/null; then
    echo "engines: ${program} is missing: install Node.js ${least_node} or newer, with npm, to install and run dynalite." >&2
    exit 1
  fi
done
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt "$least_node" ]; then
  echo "engines: Node.js $(node --version) is too old: ${least_node} or newer is needed to run dynalite." >&2
  exit 1
fi

# version_in FILE reads dynalite's version as a lock file has it: npm keeps
# one of its own beside what it has installed.
version_in() {
  [ -e "$1" ] && node -p 'require(process.argv[1]).packages["node_modules/dynalite"]?.version ?? ""' "$1"
}

wanted="$(version_in "$tools/package-lock.json")"
if [ ! -e "$tools/node_modules/dynalite/index.js" ] || [ "$(version_in "$tools/node_modules/.package-lock.json")" != "$wanted" ]; then
  echo "engines: installing dynalite $wanted" >&2
  # Nothing that dynalite is started with here needs its packages' scripts.
  (cd "$tools" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null)
fi
