#!/usr/bin/env bash
# test_full.sh [N/M]: every check at full extent (some three hours on two cores), or the N-th of M shards of them: every
# M-th test, from the N-th on. Writes a summary into tests/results/, named after the day and the shard; commit it with
# the change that it vouches for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

shard=${1:-1/1}
[[ $shard =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] && (( BASH_REMATCH[1] <= BASH_REMATCH[2] )) || {
  echo "usage: scripts/test_full.sh [N/M], 1 <= N <= M" >&2
  exit 2
}
n=${BASH_REMATCH[1]} m=${BASH_REMATCH[2]}

scripts/setup.sh tests
python=$PWD/.deps/python/bin/python  # has what the Python package needs, where it could be fetched
cmake --preset release -DFUSEC_TESTS=ON \
  $([ ! -x "$python" ] || echo "-DFUSEC_PYTHON=ON -DPython_EXECUTABLE=$python") >/dev/null
cmake --build --preset release
mkdir -p tests/results
result=tests/results/full-$(date -u +%Y-%m-%d)-$n-of-$m.txt
log=build/release/full.log
status=0
ctest --preset full --no-tests=error -I "$n,,$m" -j "$(nproc)" 2>&1 | tee "$log" || status=$?
{
  echo "fusec full tier, shard $n of $m, $(date -u '+%Y-%m-%d %H:%M UTC')"
  echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(nproc) cores, $(g++ --version | head -n 1)"
  echo
  grep -E '^ *[0-9]+/[0-9]+ Test' "$log" || true
  echo
  sed -n '/tests passed/,$p' "$log"
} >"$result"
echo "test: summary in $result"
exit "$status"
