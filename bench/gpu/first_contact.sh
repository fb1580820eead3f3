#!/usr/bin/env bash
# first_contact.sh [--seconds=360] [--out=contact] [--only=STEP,...]: what a first machine with a GPU is asked, the most
# valuable first, from the folder that pack.sh made (this script is in it; the repository's own goes to build/gpu_package).
# Each step has a watchdog; each row is appended to OUT/rows.jsonl as it comes, and OUT/summary.md is written at the end.
# Exit 1 names what failed. README.md says more.
set -euo pipefail
fail() { echo "first_contact: $*" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -d "$here/../../compiled" ] || here=$here/../../build/gpu_package/bench/gpu
[ -d "$here" ] || fail "no package: bench/gpu/pack.sh makes it"
chmod +x "$here"/../../bin/*  # what brought the folder here may have lost it
python=$(command -v python3) || fail "no python3 in PATH"
exec "$python" "$here/first_contact.py" "$@"
