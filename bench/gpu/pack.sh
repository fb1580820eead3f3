#!/usr/bin/env bash
# pack.sh [--out=build/gpu_package] [--bin=build/release/bin] [--small]: makes the folder that first_contact.sh runs from on
# a machine with a GPU: stripped programs, the workloads of bench/gpu compiled by nvcc for sm_90a, the first kernels' models
# with the reference's outputs, the models of tests/corpus with PyTorch's, the scripts. --small: shapes for the emulator,
# for tests/gpu/check_first_contact.py. Needs nvcc. Prints the folder's size; fails where it exceeds 40 MB or a program
# needs a library that a bare machine may lack.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=$root/build/gpu_package bin=$root/build/release/bin small=()
for argument in "$@"; do
  case $argument in
    --out=*) out=${argument#*=} ;;
    --bin=*) bin=${argument#*=} ;;
    --small) small=(--small) ;;
    *) echo "usage: pack.sh [--out=DIR] [--bin=DIR] [--small]" >&2; exit 2 ;;
  esac
done
fail() { echo "pack: $*" >&2; exit 1; }

rm -rf "$out.partial"
mkdir -p "$out.partial"/{bin,bench/gpu,models}
for program in fusec fusec-run compare_gpu; do
  [ -x "$bin/$program" ] || fail "no $bin/$program: cmake --build --preset release"
  strip -o "$out.partial/bin/$program" "$bin/$program"
  needed=$(ldd "$bin/$program" | grep -oE '^\s*[^ ]+\.so[^ ]*' |
    grep -vE 'linux-vdso|ld-linux|lib(c|m|stdc\+\+|gcc_s)\.so' || true)
  [ -z "$needed" ] || fail "$program needs $needed, which a bare machine may lack"
done
cp "$root"/bench/gpu/*.{py,sh} "$out.partial/bench/gpu/"
cp "$root"/bench/{compare_triton,triton_peers,inductor_kernels}.py "$out.partial/bench/"
cp "$root"/tests/corpus/models/index.json "$root"/tests/corpus/models/*.{tiny*,weights}.* "$out.partial/models/"
run=("$root/bench/gpu/run.py" "$bin" "${small[@]}")
python3 "${run[@]}" --smoke-into="$out.partial/smoke" || fail "no references of the first kernels"
python3 "${run[@]}" --compile-into="$out.partial/compiled" || fail "the workloads do not compile"
find "$out.partial/compiled" -type f ! -name '*.so' ! -name '*.manifest.json' -delete
size=$(du -sm "$out.partial" | cut -f1)
[ "$size" -le 40 ] || fail "$size MB, which is more than 40"
rm -rf "$out" && mv "$out.partial" "$out"
echo "packed $out: $size MB"
