#!/usr/bin/env bash
# prove_dockerfile.sh [FOLDER]: runs the RUN steps of the first stage of docker/Dockerfile in a fresh Debian 12, made by
# debootstrap in FOLDER (default: a temporary one, removed at the end), from what is committed; then installs and tries the
# package that comes out as the second stage does (scripts/prove_package.sh). Needs root and debootstrap; takes as long as
# a build of the programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
given=${1:-}
root=${given:-$(mktemp -d)}

clean_up() {
  umount "$root/proc" "$root/dev" 2>/dev/null || true
  [ -n "$given" ] || rm -rf --one-file-system "$root"
}
trap clean_up EXIT
[ -e "$root/bin/sh" ] || debootstrap --variant=minbase bookworm "$root" >/dev/null
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# The certificates of this machine, for machines behind a proxy.
if [ -e /etc/ssl/certs/ca-certificates.crt ] && [ ! -e "$root/etc/ssl/certs/ca-certificates.crt" ]; then
  mkdir -p "$root/etc/ssl/certs"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
fi
mkdir -p "$root/fusec"
git archive HEAD | tar -x -C "$root/fusec"
# Installing ca-certificates, the first step, writes the bundle anew: keep this machine's for pip.
[ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
  { mkdir -p "$root/fusec/.deps" && cp /etc/ssl/certs/ca-certificates.crt "$root/fusec/.deps/certificates.pem"; }

sed -n '1,/^$/{s/^RUN //p}' docker/Dockerfile | while read -r step; do
  echo "prove: RUN $step"
  start=$SECONDS
  chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    DEBIAN_FRONTEND=noninteractive /bin/sh -ec "cd /fusec && $step" </dev/null >"$root/log" 2>&1 ||
    { tail -n 30 "$root/log"; echo "prove: failed"; exit 1; }
  echo "prove: done in $((SECONDS - start)) s"
done
scripts/prove_package.sh "$root/fusec.deb" bookworm
