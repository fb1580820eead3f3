#!/usr/bin/env bash
# prove_bare.sh bookworm|trixie|noble [FOLDER] [python]: runs the README's two commands in a fresh Debian 12, Debian 13
# or Ubuntu 24.04 that has nothing but a shell, made by debootstrap in FOLDER (default: a temporary one, removed at the
# end), from what is committed; writes a summary into tests/results/bare-SUITE.txt. Needs root and debootstrap; takes
# as long as a full build and the fast tests.
#
# python: installs the Python package with pip instead, for Python 3.11 (bookworm), 3.12 (noble) or 3.13 (trixie), and
# runs the README's Python examples with it; the summary is tests/results/bare-SUITE-python.txt. 5 GB to fetch, most of
# it PyTorch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=${1:?usage: scripts/prove_bare.sh bookworm|trixie|noble [FOLDER] [python]}
given=${2:-} python=${3:-}
root=${given:-$(mktemp -d)}

clean_up() {
  umount "$root/proc" "$root/dev" 2>/dev/null || true
  [ -n "$given" ] || rm -rf --one-file-system "$root"
}
trap clean_up EXIT

if [ ! -e "$root/bin/sh" ]; then
  case $suite in
    bookworm | trixie) debootstrap --variant=minbase "$suite" "$root" ;;
    noble)  # Debian's debootstrap knows neither Ubuntu's release nor its keys; all Ubuntu releases share one script
      debootstrap --variant=minbase --components=main,universe --no-check-gpg noble "$root" \
        http://archive.ubuntu.com/ubuntu gutsy ;;
    *) echo "unknown suite $suite" >&2; exit 2 ;;
  esac
fi
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# The certificates of this machine, for machines behind a proxy; a root without a proxy needs none.
if [ -e /etc/ssl/certs/ca-certificates.crt ] && [ ! -e "$root/etc/ssl/certs/ca-certificates.crt" ]; then
  mkdir -p "$root/etc/ssl/certs"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
fi
mkdir -p "$root/fusec"
commit=$(git rev-parse --short HEAD)
git archive "$commit" | tar -x -C "$root/fusec"

in_root() {
  local certificates=() kept=fusec/.deps/certificates.pem  # scripts/setup.sh keeps a proxy's there, which apt drops
  [ ! -e "$root/$kept" ] || certificates=("PIP_CERT=/$kept")
  chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    "${certificates[@]}" /bin/bash -c "cd /fusec && $1"
}
commands=(scripts/demo.sh .ci/run scripts/demo.sh)
if [ -n "$python" ]; then
  commands=("scripts/setup.sh programs" "python3 -m venv /venv" "/venv/bin/pip install --quiet ."
    "du -sh --apparent-size /venv/lib/python3*/site-packages/{fusec,nvidia,numpy}" "/venv/bin/python -m fusec doctor"
    "/venv/bin/python tests/python/test_readme.py" "/venv/bin/pip install --quiet torch onnx"
    "/venv/bin/python tests/python/test_readme.py")
fi
run_all() {
  local command start
  for command in "${commands[@]}"; do
    echo "prove: $command in a bare $suite"
    start=$SECONDS
    in_root "$command" || { echo "prove: $command failed"; return 1; }
    echo "prove: $command passed in $((SECONDS - start)) s"
  done
}
log=$(mktemp)
status=0
run_all 2>&1 | tee "$log" || status=$?
mkdir -p tests/results
shown='^(prove|setup|demo|test|ci|torch|skipped):|tests passed|[0-9]+/[0-9]+ Test|^wrote|Total Test time|Skipped'
shown+='|kernels, .* launches|site-packages|^Ran|^(OK|FAILED)'
{
  echo "scripts/prove_bare.sh $suite${python:+ FOLDER python}, $(date -u +%Y-%m-%d), commit $commit," \
    "$(nproc) cores"
  echo
  grep -E "$shown" "$log"
} >"tests/results/bare-$suite${python:+-python}.txt"
rm -f "$log"
exit $status
