#!/usr/bin/env bash
# prove_dockerfile.sh [FOLDER]: runs the RUN steps of the first stage of docker/Dockerfile in a fresh Debian 12, made by
# debootstrap in FOLDER (default: a temporary one, removed at the end), from what is committed; then installs and tries the
# package that comes out as the second stage does (scripts/prove_package.sh). Needs root and debootstrap; takes as long as
# a build of the programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/bare_root.sh
make_root bookworm "${1:-}" >/dev/null
put_sources
# Installing ca-certificates, the first step, writes the bundle anew: keep this machine's for pip.
[ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
  { mkdir -p "$root/fusec/.deps" && cp /etc/ssl/certs/ca-certificates.crt "$root/fusec/.deps/certificates.pem"; }

sed -n '1,/^$/{s/^RUN //p}' docker/Dockerfile | while read -r step; do
  echo "prove: RUN $step"
  start=$SECONDS
  in_root "$step" </dev/null >"$root/log" 2>&1 ||
    { tail -n 30 "$root/log"; echo "prove: failed"; exit 1; }
  echo "prove: done in $((SECONDS - start)) s"
done
scripts/prove_package.sh "$root/fusec.deb" bookworm
