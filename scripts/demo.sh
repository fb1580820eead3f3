#!/usr/bin/env bash
# demo.sh: from a bare machine to fused CUDA. Installs what is missing, builds the programs, compiles
# examples/llama_block.json (or the model given) and says where out.cu lies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
model=${1:-examples/llama_block.json}

# What the build says, on one line of a terminal: "[120/473] Building CXX object ...".
show_progress() {
  local line columns
  columns=$(tput cols 2>/dev/null || echo 80)
  while IFS= read -r line; do
    if [ -t 1 ] && [[ $line == \[* ]]; then printf '\rdemo: %s\033[K' "${line:0:columns-7}"; fi
  done
  if [ -t 1 ]; then printf '\r\033[K'; fi
}

scripts/setup.sh programs
if [ ! -e build/release/build.ninja ]; then
  echo "demo: configuring build/release"
  cmake --preset release -DFUSEC_TESTS=OFF >/dev/null
fi
echo "demo: building fusec and fusec-run (minutes, the first time)"
log=build/release/build.log
if ! cmake --build --preset release --target fusec_program fusec_run_program 2>&1 | tee "$log" | show_progress; then
  grep -A 20 -m 1 'FAILED' "$log" || tail -n 20 "$log"
  exit 1
fi

mkdir -p build/demo
echo "demo: build/release/bin/fusec $model -o build/demo/out.cu"
build/release/bin/fusec "$model" -o build/demo/out.cu
echo "demo: the emitted source is $PWD/build/demo/out.cu ($(wc -l <build/demo/out.cu) lines)"
