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
# NVRTC is the one of PyTorch's wheels, which the package finds by itself; scripts/test.sh runs with the pinned one.
export PYTHONPATH=$PWD/$package

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs python
export end=$((EPOCHSECONDS + limit - SECONDS))
# run TEST [OPTION...]: says how it went, with its output; a failure leaves a file.
run() {
  local log=$logs/$1.log start=$EPOCHSECONDS left=$((end - EPOCHSECONDS)) result=0
  if [ "$left" -le 5 ]; then
    echo "torch: no time for $1"
    return
  fi
  timeout --kill-after=10 "$left" "$python" tests/python/"$@" </dev/null >"$log" 2>&1 || result=$?
  case $result in
    0) echo "torch: passed $* in $((EPOCHSECONDS - start)) s: $(tail -n 1 "$log")" ;;
    77) echo "torch: skipped $*: $(tail -n 1 "$log")" ;;
    124) echo "torch: no time for all of $*" ;;
    *)
      touch "$logs/failed"
      cat "$log"
      echo "torch: failed $*"
      ;;
  esac
}
export -f run
xargs -P "$(nproc)" -I{} bash -c 'run {}' <<'TESTS'
check_library_models.py --sample
test_from_onnx.py
check_op_db.py --count=25
test_collectives.py
test_torch_calls.py
test_backend.py
test_eager_operators.py
test_explain.py
test_cuda_graphs.py
test_from_torch.py
check_random_modules.py --count=20
test_readme.py
TESTS
[ ! -e "$logs/failed" ]
