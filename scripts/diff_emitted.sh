#!/usr/bin/env bash
# diff_emitted.sh A B [MODEL...]: how the emitted CUDA of two builds differs, as a unified diff, with the number of
# models that differ on standard error. A and B are fusec programs (build/release/bin/fusec), or commits, which are built
# in a folder of their own first. Without models: those of examples, tests/golden and tests/corpus/models, for every
# target and strategy `full`. Status 0: no difference, 1: some, 2: something could not be run.
#
#   git stash && cmake --build --preset release && cp build/release/bin/fusec /tmp/before && git stash pop
#   cmake --build --preset release && scripts/diff_emitted.sh /tmp/before build/release/bin/fusec | less
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
work=$(mktemp -d)
trap 'cd /; rm -rf "$work"; git -C "$OLDPWD" worktree prune 2>/dev/null || true' EXIT

# program_of COMMIT_OR_PROGRAM NAME
program_of() {
  if [ -x "$1" ] && [ ! -d "$1" ]; then realpath "$1"; return; fi
  git rev-parse --verify --quiet "$1^{commit}" >/dev/null || { echo "$1 is no program and no commit" >&2; return 2; }
  git worktree add --quiet --detach "$work/tree_$2" "$1" >&2
  (cd "$work/tree_$2" && cmake --preset release -DFUSEC_TESTS=OFF && cmake --build --preset release --target fusec_program) \
    >"$work/build_$2.log" 2>&1 || { tail -n 20 "$work/build_$2.log" >&2; return 2; }
  echo "$work/tree_$2/build/release/bin/fusec"
}

a=$(program_of "$1" a) b=$(program_of "$2" b)
shift 2
models=("$@")
[ ${#models[@]} != 0 ] || models=(examples/*.json tests/golden/*.json tests/corpus/models/*.full.json)
for target in sm_80 sm_90a; do
  for side in a b; do
    mkdir -p "$work/$side/$target"
    printf '%s\n' "${models[@]}" | xargs -P "$(nproc)" -I{} bash -c '
      out=$1/$(tr / + <<<"$2"); "${@:3}" "$2" --no-nvrtc --quiet -o "$out.cu" >/dev/null 2>"$out.txt" || true' \
      _ "$work/$side/$target" {} "${!side}" "--arch=$target"
  done
done
cd "$work"
status=0
diff -ru a b || status=$?
echo "$((2 * ${#models[@]})) emitted files compared, $(diff -rq a b | grep -c '' || true) differ" >&2
exit $status
