#!/usr/bin/env bash
# fuzz.sh [--seconds=N] [--timeout=N] [--readers-only] [TARGET...]: builds the libFuzzer targets with clang (address and
# undefined-behaviour sanitizers, in build/fuzz) and runs each for N seconds (default 60), as many at a time as there
# are cores. An input may take 25 seconds (--timeout) and 2 GiB. The corpus grows in build/fuzz/corpus/TARGET. A fault
# ends the script with status 1 and the path of its input; a machine without clang with status 77.
#
# --readers-only: only what reads a user's files is compiled so (a minute of two cores instead of twenty); the rest is
# linked from build/release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=60 timeout=25 readers_only= targets=()
for argument in "$@"; do
  case $argument in
    --seconds=*) seconds=${argument#*=} ;;
    --timeout=*) timeout=${argument#*=} ;;
    --readers-only) readers_only=1 ;;
    -*) echo "unknown option $argument; known are --seconds=N, --timeout=N and --readers-only" >&2; exit 2 ;;
    *) targets+=("$argument") ;;
  esac
done
known=($(cd tests/fuzz/targets && ls -- *.cpp | sed 's/\.cpp$//'))
[ ${#targets[@]} != 0 ] || targets=("${known[@]}")
for target in "${targets[@]}"; do
  [ -e "tests/fuzz/targets/$target.cpp" ] || { echo "no target $target; known are ${known[*]}" >&2; exit 2; }
done
probe='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null <<<"$probe" 2>/dev/null ||
  { echo "skipped: clang++ with libFuzzer and the sanitizers is not installed"; exit 77; }

readers=(ir/{attribute_text,foreign_model,json_*,parse_dim,read*,safetensors,scalar_expression,text_parse,utf8}.cpp
  schedule/target/target_file.cpp transforms/plan_file.cpp transforms/patterns/{library_patterns,pattern_*}.cpp
  codegen/tuning/tuning_database.cpp runtime/emulator/ptx_*.cpp tests/fuzz/{libfuzzer,mutate,seed_files,input_pipe}.cpp)
libraries=(src/libfusec.a libfusec_{runtime,codegen,transforms,schedule,analysis,ir}.a)

# Names that both an object and a library define are the object's.
build_readers() {
  [ -e build/release/src/libfusec.a ] || { echo "build/release has no programs: scripts/demo.sh builds them"; exit 2; }
  mkdir -p build/fuzz/objects build/fuzz/bin
  local flags="-std=c++20 -O1 -g1 -fPIC -I. -Iinclude -Itests -DBOOST_ALL_NO_LIB -DFUSEC_TESTS_DIR=\"$PWD/tests\""
  flags+=" -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
  export flags
  printf '%s\n' "${readers[@]}" "${targets[@]/%/.cpp}" | sed -E 's#^([a-z_]+[.]cpp)$#tests/fuzz/targets/\1#' |
    xargs -P "$(nproc)" -I{} bash -c 'clang++ $flags -c {} -o build/fuzz/objects/$(tr / + <<<{}).o'
  local target objects=("${readers[@]//\//+}")
  objects=("${objects[@]/%/.o}")
  for target in "${targets[@]}"; do
    clang++ -fsanitize=fuzzer,address,undefined -Wl,-z,muldefs "${objects[@]/#/build/fuzz/objects/}" \
      "build/fuzz/objects/tests+fuzz+targets+$target.cpp.o" "${libraries[@]/#/build/release/}" -lfmt -ldl -lpthread \
      -o "build/fuzz/bin/fuzz_$target"
  done
}

if [ -n "$readers_only" ]; then
  build_readers
else
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz --target "${targets[@]/#/fuzz_}"
fi

# fuzz TARGET: status 1 where an input is a fault.
fuzz() {
  local program=build/fuzz/bin/fuzz_$1 corpus=build/fuzz/corpus/$1 found=build/fuzz/found log=build/fuzz/fuzz_$1.log
  mkdir -p "$corpus" "$found"
  "$program" --write-seeds="$corpus"
  if "$program" -max_total_time="$seconds" -timeout="$timeout" -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=8192 \
      -print_final_stats=1 -artifact_prefix="$found/$1-" "$corpus" >"$log" 2>&1; then
    echo "$1: $(grep -o 'Done .*' "$log"), $(ls "$corpus" | wc -l) inputs kept, no fault"
  else
    grep -vE '^#[0-9]+\s+(NEW|REDUCE|INITED|RELOAD|pulse)' "$log" | tail -n 40
    echo "$1: a fault; its input: $(grep -oE "$found/\S+" "$log" | tail -1) (the log is $log)"
    return 1
  fi
}

# One process for each core.
faults=0 running=()
for target in "${targets[@]}"; do
  if [ ${#running[@]} -ge "$(nproc)" ]; then
    wait "${running[0]}" || faults=1
    running=("${running[@]:1}")
  fi
  fuzz "$target" &
  running+=($!)
done
for process in "${running[@]}"; do wait "$process" || faults=1; done
exit $faults
