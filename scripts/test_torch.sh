#!/usr/bin/env bash
# test_torch.sh [SECONDS]: the tests of the Python package that need PyTorch and ONNX, as samples that end within SECONDS
# (default 360), after scripts/test.sh, which builds the package. Installs what scripts/torch.txt pins into .deps/torch
# (3 GB to fetch). Exit status 77 where that cannot be fetched, or the package was not built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "torch: $*"; }
limit=${1:-360}
package=build/release/python
base=.deps/python/bin/python
python=.deps/torch/bin/python

if ! ls "$package"/fusec/_core*.so >/dev/null 2>&1 || [ ! -x "$base" ]; then
  say "skipped: the Python package is not built"
  exit 77
fi
if [ ! -x "$python" ]; then
  say "fetching what scripts/torch.txt pins into .deps/torch"
  rm -rf .deps/torch.partial
  "$base" -m venv .deps/torch.partial
  if ! timeout "$limit" .deps/torch.partial/bin/python -m pip --disable-pip-version-check install --quiet --no-deps \
    --no-compile --only-binary=:all: --require-hashes -r scripts/torch.txt </dev/null; then
    rm -rf .deps/torch.partial
    say "skipped: PyTorch could not be fetched"
    exit 77
  fi
  mv .deps/torch.partial .deps/torch
fi
nvrtc=$(ls .deps/nvrtc/lib/libnvrtc.so.1[23] 2>/dev/null | head -1 || true)
[ -z "$nvrtc" ] || export FUSEC_NVRTC=$PWD/$nvrtc
export PYTHONPATH=$PWD/$package
status=0
run() {
  local left=$((limit - SECONDS))
  if [ "$left" -le 5 ]; then
    say "no time for $1"
    return
  fi
  say "$*"
  local result=0
  timeout --kill-after=10 "$left" "$python" "$@" </dev/null || result=$?
  case $result in
    0 | 77) ;;
    124) say "no time for all of $1" ;;
    *) status=1 ;;
  esac
}
run tests/python/test_readme.py
run tests/python/test_backend.py
run tests/python/test_from_onnx.py
run tests/python/test_from_torch.py
run tests/python/test_collectives.py
run tests/python/check_op_db.py --count=25
run tests/python/check_random_modules.py --count=25
exit $status
