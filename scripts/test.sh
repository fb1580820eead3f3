#!/usr/bin/env bash
# test.sh [CTEST ARGUMENT...]: from a bare machine to passed tests. Installs what is missing, builds the programs and
# the tests, and runs the fast tier (at most 12 minutes on two cores); scripts/test_full.sh runs everything.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh tests
echo "test: configuring build/release"
python=$PWD/.deps/python/bin/python  # has what the Python package needs, where it could be fetched
cmake --preset release -DFUSEC_TESTS=ON \
  $([ ! -x "$python" ] || echo "-DFUSEC_PYTHON=ON -DPython_EXECUTABLE=$python") >/dev/null
echo "test: building the programs and the tests"
cmake --build --preset release
echo "test: running the fast tier"
ctest --preset fast --no-tests=error -j "$(nproc)" "$@"
