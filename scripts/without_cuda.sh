#!/usr/bin/env bash
# without_cuda.sh COMMAND [ARGUMENT...]: runs COMMAND as on a machine that has no CUDA toolkit. In a mount namespace for
# COMMAND and its children alone, the toolkit's folders and /usr/local/include (which may link to its headers) are empty,
# and its programs are not executable. Needs root or user namespaces; fails where the toolkit cannot be hidden.
set -euo pipefail

fail() { printf 'without_cuda: %s\n' "$*" >&2; exit 3; }
toolkit() { ls -d /usr/local/cuda* /opt/cuda* /usr/local/include/cuda*.h 2>/dev/null; command -v nvcc; }
folders() {
  local folder
  for folder in /usr/local/cuda* /opt/cuda* /usr/local/include; do
    [ ! -d "$folder" ] || readlink -f "$folder"
  done | sort -u
}
sees_headers() { echo '#include <cuda_runtime_api.h>' | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1; }

if [ "${1:-}" != --hidden ]; then
  [ $# -gt 0 ] || fail "usage: scripts/without_cuda.sh COMMAND [ARGUMENT...]"
  [ -n "$(toolkit)" ] || exec "$@"  # there is nothing to hide
  namespace=(unshare --mount)
  [ "$(id -u)" = 0 ] || namespace+=(--map-root-user)
  "${namespace[@]}" true || fail "no mount namespace can be made here (unshare --mount)"
  exec "${namespace[@]}" -- "${BASH_SOURCE[0]}" --hidden "$@"
fi
shift

for folder in $(folders); do mount -t tmpfs -o ro,size=4k none "$folder"; done
unset CUDA_HOME CUDA_PATH CUDA_ROOT CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH
PATH=$(tr ':' '\n' <<<"$PATH" | grep -v '/cuda' | paste -sd: -)
export PATH
IFS=: read -ra path <<<"$PATH"
for program in nvcc ptxas nvlink fatbinary cuobjdump nvdisasm; do
  for folder in "${path[@]}"; do
    [ ! -x "$folder/$program" ] || mount --bind /dev/null "$(readlink -f "$folder/$program")"
  done
done
if command -v "${CXX:-c++}" >/dev/null && sees_headers; then fail "the compiler still finds cuda_runtime_api.h"; fi
exec "$@"
