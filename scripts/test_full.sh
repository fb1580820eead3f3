#!/usr/bin/env bash
# test_full.sh: every check at full extent (some five hours on two cores). Writes a summary into tests/results/,
# named after the day; commit it with the change that it vouches for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh tests
cmake --preset release -DFUSEC_TESTS=ON >/dev/null
cmake --build --preset release
mkdir -p tests/results
result=tests/results/$(date -u +%Y-%m-%d).txt
log=build/release/full.log
status=0
ctest --preset full -j "$(nproc)" 2>&1 | tee "$log" || status=$?
{
  echo "fusec full tier, $(date -u '+%Y-%m-%d %H:%M UTC')"
  echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(nproc) cores, $(g++ --version | head -n 1)"
  echo
  grep -E '^ *[0-9]+/[0-9]+ Test' "$log" || true
  echo
  sed -n '/tests passed/,$p' "$log"
} >"$result"
echo "test: summary in $result"
exit "$status"
