#!/usr/bin/env bash
# prove_install.sh [FOLDER]: in a fresh Debian 12, made by debootstrap in FOLDER (default: a temporary one, removed at the
# end), from what is committed: runs the RUN steps of the first stage of docker/Dockerfile; installs that build with
# `cmake --install` and builds and runs the C, C++ and Rust examples against it; then installs and tries the package as
# the second stage does (scripts/prove_package.sh). Writes the times into tests/results/install.txt. Needs root and
# debootstrap; takes as long as a build of the programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/bare_root.sh
make_root bookworm "${1:-}" >/dev/null
put_sources
commit=$(git rev-parse --short HEAD)
# Installing ca-certificates, the first step, writes the bundle anew: keep this machine's for pip.
[ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
  { mkdir -p "$root/fusec/.deps" && cp /etc/ssl/certs/ca-certificates.crt "$root/fusec/.deps/certificates.pem"; }

step() {
  local start=$SECONDS
  in_root "$2" </dev/null >"$root/log" 2>&1 || { tail -n 30 "$root/log"; echo "prove: $1: failed"; exit 1; }
  echo "prove: $1: $((SECONDS - start)) s"
}
prove() {
  local command prefix=/opt/fusec library_path="LD_LIBRARY_PATH=/opt/fusec/lib"
  sed -n '1,/^$/{s/^RUN //p}' docker/Dockerfile | while read -r command; do step "RUN $command" "$command"; done || exit 1
  step "cmake --install" "cmake --install build/release --prefix $prefix"
  step "apt installs pkg-config and rustc" "apt-get install -y --no-install-recommends pkg-config rustc"
  step "C, with pkg-config" "export PKG_CONFIG_PATH=$prefix/lib/pkgconfig $library_path
    cc examples/c/compile.c -o /tmp/c \$(pkg-config --cflags --libs fusec) -lm && /tmp/c"
  step "C, with find_package" "cmake -G Ninja -S tests/install -B /tmp/build_c -DCMAKE_PREFIX_PATH=$prefix \
    -Dc_source=/fusec/examples/c/compile.c && cmake --build /tmp/build_c && /tmp/build_c/compile"
  step "C++, with find_package" "sed -n '/^\`\`\`cpp\$/,/^\`\`\`\$/{/^\`\`\`/!p}' README.md >/tmp/readme.cpp
    cmake -G Ninja -S tests/install -B /tmp/build -DCMAKE_PREFIX_PATH=$prefix -Dreadme_source=/tmp/readme.cpp \
      -Dfront_end_source=/fusec/examples/front_end.cpp && cmake --build /tmp/build && /tmp/build/front_end && /tmp/build/readme"
  step "Rust" "export $library_path
    rustc --edition 2021 examples/rust/compile.rs -L $prefix/lib -o /tmp/rust && /tmp/rust"
  scripts/prove_package.sh "$root/fusec.deb" bookworm || exit 1
}

mkdir -p tests/results
log=$(mktemp)
status=0
prove 2>&1 | tee "$log" || status=$?
{
  echo "scripts/prove_install.sh, $(date -u +%Y-%m-%d), commit $commit, $(nproc) cores"
  echo
  grep -v '^I:' "$log" | sed "s|$root||g"
} >tests/results/install.txt
rm "$log"
exit "$status"
