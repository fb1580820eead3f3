#!/usr/bin/env bash
# setup.sh programs|tests|bench|docs: installs what building the programs (or the tests, the benchmarks too, or the
# documentation site) needs and is not there yet.
#
# Debian packages come from apt (as root, or through sudo). NVRTC, NVIDIA's run-time compiler, is taken from an
# installed CUDA toolkit, else a pinned wheel is unpacked into .deps/nvrtc of this folder, as is for tests the disassembler
# nvdisasm; nothing else of the machine is touched. Says what it does; when all is there it does nothing and takes under a second.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for_programs=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libcli11-dev libboost-dev python3-dev python3-venv)
for_tests=(doctest-dev graphviz python3)
for_bench=(libbenchmark-dev)
for_wheel=(python3 python3-venv ca-certificates)

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 3; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "needs root or sudo for: $*"; fi
}

# need PACKAGE...: installs those Debian packages among them that are missing.
need() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no apt here; install the equivalents of these by hand: $*"
    return
  fi
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  say "installing with apt: ${missing[*]}"
  local log; log=$(mktemp)
  if ! { as_root apt-get update && install_packages "${missing[@]}"; } </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "apt could not install: ${missing[*]} (whole log: $log)"
  fi
  rm -f "$log"
}
install_packages() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# A machine behind a proxy may hold the proxy's certificate in its bundle by hand. Python's packages bring
# ca-certificates, which writes that file anew: keep what was there for pip.
bundle=/etc/ssl/certs/ca-certificates.crt
kept_bundle=.deps/certificates.pem
if [ -e "$bundle" ] && [ ! -e /usr/sbin/update-ca-certificates ]; then
  mkdir -p .deps && cp "$bundle" "$kept_bundle"
fi

# Prints the NVRTC library that the programs will find, in the order in which they look
# (codegen/nvrtc/nvrtc_search_paths.h).
find_nvrtc() {
  local candidate root folder
  local candidates=("${FUSEC_NVRTC:-}" "$PWD"/.deps/nvrtc/lib/libnvrtc.so.{13,12})
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    [ -n "$root" ] || continue
    for folder in lib64 lib targets/x86_64-linux/lib; do candidates+=("$root/$folder"/libnvrtc.so.{13,12}); done
  done
  for candidate in "${candidates[@]}"; do
    if [ -n "$candidate" ] && [ -e "$candidate" ]; then echo "$candidate"; return; fi
  done
  loader_finds 'libnvrtc\.so\.1[23]'
}

# loader_finds PATTERN: the first library of that name that the loader knows and that is there still.
loader_finds() {
  local file
  { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null || true; } | sed -n "s/^[[:space:]]*$1 .*=> //p" |
    while read -r file; do if [ -e "$file" ]; then echo "$file"; break; fi; done
}

# download_wheel LIST FOLDER: the wheel that the list pins.
download_wheel() {
  need "${for_wheel[@]}"
  local certificate=
  [ ! -e "$kept_bundle" ] || certificate=$kept_bundle
  python3 -m venv "$2/venv"
  "$2/venv/bin/python" -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: \
    --require-hashes -r "$1" -d "$2" ${certificate:+--cert "$certificate"} </dev/null || return 1
}

# Unpacks the pinned wheel's libraries into .deps/nvrtc/lib; a half-done attempt leaves nothing there.
fetch_nvrtc() {
  local work=.deps/nvrtc.partial
  rm -rf "$work" && mkdir -p "$work/lib"
  say "no CUDA toolkit found: fetching the NVRTC wheel pinned in scripts/nvrtc.txt (90 MB) into .deps/nvrtc"
  download_wheel scripts/nvrtc.txt "$work" || return 1
  python3 - "$work" <<'PYTHON'
import glob, os, shutil, sys, zipfile
work = sys.argv[1]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel:
    for name in wheel.namelist():
        file = os.path.basename(name)
        if file.startswith("libnvrtc") and ".alt." not in file:
            with wheel.open(name) as source, open(f"{work}/lib/{file}", "wb") as target:
                shutil.copyfileobj(source, target)
PYTHON
  rm -rf .deps/nvrtc && mkdir -p .deps/nvrtc && mv "$work/lib" .deps/nvrtc/lib && rm -rf "$work"
}

# NVIDIA's disassembler, with which tests read the machine code: into .deps/nvdisasm, the same way.
fetch_nvdisasm() {
  local work=.deps/nvdisasm.partial
  rm -rf "$work" && mkdir -p "$work"
  say "fetching the disassembler's wheel pinned in scripts/nvdisasm.txt (5 MB) into .deps/nvdisasm"
  download_wheel scripts/nvdisasm.txt "$work" || return 1
  python3 - "$work" <<'PYTHON'
import glob, os, sys, zipfile
work = sys.argv[1]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith("/bin/nvdisasm"))
    with open(work + "/nvdisasm", "wb") as target:
        target.write(wheel.read(name))
os.chmod(work + "/nvdisasm", 0o755)
PYTHON
  rm -rf .deps/nvdisasm && mkdir -p .deps/nvdisasm && mv "$work/nvdisasm" .deps/nvdisasm/nvdisasm && rm -rf "$work"
}

# fetch_environment NAME WHAT: a virtual environment .deps/NAME with what scripts/NAME.txt pins. Its programs are called
# as modules (python -m mkdocs): their scripts name the folder in which they were installed.
fetch_environment() {
  local work=.deps/$1.partial certificate=
  [ ! -e "$kept_bundle" ] || certificate=$kept_bundle
  rm -rf "$work"
  say "fetching what scripts/$1.txt pins ($2) into .deps/$1"
  python3 -m venv "$work" || return 1
  "$work/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps --only-binary=:all: \
    --require-hashes -r "scripts/$1.txt" ${certificate:+--cert "$certificate"} </dev/null || return 1
  rm -rf ".deps/$1" && mv "$work" ".deps/$1"
}

# What the full set of checks would also use; each is skipped by name where it is missing.
say_what_is_skipped() {
  local nvcc toolkit; nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
  toolkit=$(dirname "$(readlink -f "${nvcc:-/nowhere/bin/nvcc}")")/..
  [ -n "$nvcc" ] || say "skipped here, no nvcc: compiling the host part of emitted files, linking two of them"
  has_library libcuda.so.1 || say "skipped here, no CUDA driver: running on a GPU (--device=cuda)"
  has_library libnccl.so.2 || say "skipped here, no NCCL: compiling the collectives of emitted files"
  has_header "$toolkit"/include/cublasLt.h || say "skipped here, no cuBLASLt: emitted files of --gemm=cublaslt"
  has_header "$toolkit"/include/{cub,cccl/cub} || say "skipped here, no CUB: comparisons with CUB's reductions"
  command -v valgrind >/dev/null || say "skipped here, no valgrind: counts of the compiler's own instructions"
  command -v rustc >/dev/null || say "skipped here, no rustc: the example in Rust"
  has_module torch || say "skipped here, no PyTorch: fusec.from_torch on PyTorch modules"
  [ -x .deps/docs/bin/python ] || say "skipped here, no MkDocs: the documentation site (scripts/setup.sh docs)"
  has_module tvm || say "skipped here, no TVM: bench/compare_tvm.py (it installs TVM itself when asked)"
}
has_library() { [ -n "$(loader_finds "${1//./\\.}")" ]; }
has_header() {
  local file
  for file in "$@"; do [ ! -e "$file" ] || return 0; done
  return 1
}
has_module() { python3 -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" 2>/dev/null; }

case "${1:-}" in
  programs) need "${for_programs[@]}" ;;
  tests) need "${for_programs[@]}" "${for_tests[@]}" ;;
  bench) need "${for_programs[@]}" "${for_tests[@]}" "${for_bench[@]}" ;;
  docs)
    need "${for_wheel[@]}"
    [ -x .deps/docs/bin/python ] || fetch_environment docs "MkDocs and what checks workflows: 30 MB" ||
      fail "what scripts/docs.txt pins could not be fetched"
    say "the site: .deps/docs/bin/python -m mkdocs build --strict"
    exit ;;
  *) echo "usage: scripts/setup.sh programs|tests|bench|docs" >&2; exit 2 ;;
esac
[ -n "$(find_nvrtc)" ] || fetch_nvrtc || fail "the NVRTC wheel could not be fetched; set FUSEC_NVRTC to a libnvrtc.so.13"
say "NVRTC: $(find_nvrtc)"
if [ "$1" != programs ] && ! command -v nvdisasm >/dev/null && [ ! -x .deps/nvdisasm/nvdisasm ]; then
  fetch_nvdisasm || say "skipped here, no nvdisasm could be fetched: reading machine code in tests"
fi
if [ "$1" != programs ] && [ ! -x .deps/python/bin/python ]; then
  fetch_environment python "nanobind, NumPy: 17 MB" ||
    say "skipped here, no nanobind and NumPy could be fetched: the Python package and its tests"
fi
[ "$1" = programs ] || say_what_is_skipped
say "all that is needed is there"
