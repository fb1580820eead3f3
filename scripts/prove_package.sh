#!/usr/bin/env bash
# prove_package.sh DEB [SUITE] [FOLDER]: installs the package that `cpack` made in a fresh Debian, by debootstrap in FOLDER
# (default: a temporary one, removed at the end), with apt, which brings its dependencies; then compiles a model with
# NVRTC, runs it on the emulator, opens the manual and the completions, and removes the package again. Needs root and
# debootstrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
deb=${1:?usage: scripts/prove_package.sh DEB [SUITE] [FOLDER]}
suite=${2:-bookworm}
. scripts/bare_root.sh
make_root "$suite" "${3:-}" >/dev/null
rm -rf "$root/fusec" && mkdir "$root/fusec"
cp "$deb" "$root/fusec/fusec.deb"
cp examples/swiglu_mlp.json examples/scale.ptx tests/golden/linear_gelu.json "$root/fusec/"

step() {
  local start=$SECONDS
  in_root "$2" >"$root/fusec/log" 2>&1 || { cat "$root/fusec/log"; echo "prove: $1: failed"; exit 1; }
  echo "prove: $1: $((SECONDS - start)) s"
}
step "apt installs it" "apt-get update -q && apt-get install -y --no-install-recommends ./fusec.deb"
step "fusec doctor can compile" "fusec doctor"
step "out.cu, proven by NVRTC" "fusec swiglu_mlp.json -o out.cu --arch=sm_90a && test -s out.cu && ! grep -q 'not proven' log"
step "a model on the emulator" "fusec-run linear_gelu.json --random --device=emulator --verify"
step "manual pages" "test -s /usr/share/man/man1/fusec.1.gz -o -s /usr/share/man/man1/fusec.1"
step "completion in bash" \
  ". /usr/share/bash-completion/completions/fusec; COMP_WORDS=(fusec --strat); COMP_CWORD=1; compopt() { :; }; _fusec;
   test \"\${COMPREPLY[*]}\" = --strategy="
step "headers and package file" "test -s /usr/include/fusec/fusec.h && find /usr/lib -name fusecConfig.cmake | grep -q ."
step "apt removes it" "apt-get purge -y fusec && ! test -e /usr/bin/fusec && ! test -e /usr/lib/fusec"
echo "prove: $(basename "$deb"), $(stat -c %s "$deb") bytes, works in a fresh $suite"
