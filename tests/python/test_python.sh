#!/usr/bin/env bash
# The Python package: built against what make has built, its tests run by pytest but for those marked `packages`. VPPS_TEST_PYTHON=packages
# (test_packages.sh): those, which need large packages from the index, and the package's types checked. The package then lies in another
# folder, since test_wheel.sh beside it uses the first.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}

if [ "${VPPS_TEST_PYTHON:-}" = packages ]; then which=packages env=(all) lib=$BUILD/python-packages; else which="not packages" env=() lib=$BUILD/python; fi
python=$(tools/python_env.sh "${env[@]}") || { echo "left out: the Python package"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
passed=0 failed=0 skipped=0
VPPS_LIBRARY=$BUILD/libvpps.a "$python" setup.py -q build --build-lib "$lib" --build-temp "$lib-temp" ||
    { echo "the package does not build"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }

if [ "$which" = packages ]; then
    if MYPYPATH=python "$python" -m mypy --cache-dir "$BUILD/mypy" python/vpps examples/*.py; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
else
    echo "left out: mypy, and tests of large packages: make check-package has them"
    skipped=$((skipped + 1))
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
unset PYTHONDONTWRITEBYTECODE # compiled modules go to the build folder
PYTHONPATH=$(realpath "$lib") PYTHONPYCACHEPREFIX=$(realpath -m "$BUILD/pycache") HF_HOME=$(realpath -m "$BUILD/hf") HF_HUB_OFFLINE=1 \
    "$python" -X faulthandler -m pytest -p no:cacheprovider -rs -m "$which" tests/python |
    tee "$log"
of() { sed -nE "s/.*\\b([0-9]+) $1\\b.*/\\1/p" <<< "$(tail -n 1 "$log")" | grep . || echo 0; }
passed=$((passed + $(of passed))) failed=$((failed + $(of failed) + $(of errors) + $(of error))) skipped=$((skipped + $(of skipped)))
[ "$(of passed)" -gt 0 ] || failed=$((failed + 1))
sed -nE 's/^SKIPPED (.*)/skipped: \1/p' "$log"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
