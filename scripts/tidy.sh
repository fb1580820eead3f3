#!/usr/bin/env bash
# tidy.sh [FILE...]: clang-format and clang-tidy over the sources (or the files given), as .clang-format and .clang-tidy
# say; changes nothing. Needs both tools (Debian: apt-get install clang-format clang-tidy) and a configured build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# = 0 ]; then
  mapfile -t files < <(find include ir analysis schedule transforms codegen runtime src examples -name '*.cpp' | sort)
  mapfile -t headers < <(find include ir analysis schedule transforms codegen runtime src tests -name '*.h' -o -name '*.cpp' | sort)
  clang-format --dry-run --Werror "${headers[@]}"
else
  files=("$@")
fi
[ -e build/dev/build.ninja ] || cmake --preset dev >/dev/null
cmake -B build/dev -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p build/dev
