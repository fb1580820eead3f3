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
python=${3:-}
. scripts/bare_root.sh
make_root "$suite" "${2:-}"
put_sources
commit=$(git rev-parse --short HEAD)

run() {
  local certificates=() kept=fusec/.deps/certificates.pem  # scripts/setup.sh keeps a proxy's there, which apt drops
  [ ! -e "$root/$kept" ] || certificates=("PIP_CERT=/$kept")
  in_root "$1" "${certificates[@]}"
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
    run "$command" || { echo "prove: $command failed"; return 1; }
    echo "prove: $command passed in $((SECONDS - start)) s"
  done
}
log=$(mktemp)
status=0
run_all 2>&1 | tee "$log" || status=$?
mkdir -p tests/results
shown='^(prove|setup|demo|test|ci|torch|skipped):|tests passed|[0-9]+/[0-9]+ Test|^wrote|Total Test time|Skipped'
shown+='|kernels, .* launches|^[0-9.]+[KMG]\s|^Ran|^(OK|FAILED)'
{
  echo "scripts/prove_bare.sh $suite${python:+ FOLDER python}, $(date -u +%Y-%m-%d), commit $commit," \
    "$(nproc) cores"
  echo
  grep -E "$shown" "$log"
} >"tests/results/bare-$suite${python:+-python}.txt"
rm -f "$log"
exit $status
