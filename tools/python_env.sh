#!/usr/bin/env bash
# Prints the Python that the package is built and tested with: $VPPS_PYTHON, or that of a virtual environment in BUILD/python-env,
# made here with what the tests need from the package index; its modules are compiled when they are first imported, which few of them
# are. all: also mypy and the packages that few tests need; such a test skips without its package. Fails, and tells why, where there is
# none.
#
#     tools/python_env.sh [all]
set -euo pipefail

if [ -n "${VPPS_PYTHON:-}" ]; then
    echo "$VPPS_PYTHON"
    exit 0
fi
env=${BUILD:-build}/python-env needed='cffi setuptools>=77 wheel numpy pytest safetensors tqdm'
more='mypy types-tqdm tensorboardX matplotlib tokenizers datasets'
python3 -c 'import venv, sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null ||
    { echo "no Python from 3.9 on with venv" >&2; exit 1; }
mkdir -p "${BUILD:-build}"
exec 9> "$env.lock"
flock 9 # tests that run beside each other ask for it
install() { timeout 300 "$env/bin/pip" --quiet --disable-pip-version-check install --no-compile "$@"; }
if [ "$(cat "$env/wanted" 2> /dev/null)" != "$needed" ]; then
    rm -rf "$env"
    read -r -a names <<< "$needed"
    {
        python3 -m venv "$env" && "$env/bin/python" -c 'import os, sysconfig, sys
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' && install "${names[@]}"
    } >&2 || { echo "no environment for the tests: Python.h, or packages from the index, are missing" >&2; exit 1; }
    echo "$needed" > "$env/wanted"
fi
if [ "${1:-}" = all ] && [ "$(cat "$env/more" 2> /dev/null)" != "$more" ]; then
    read -r -a names <<< "$more"
    install "${names[@]}" >&2 || echo "some packages are missing" >&2
    echo "$more" > "$env/more"
fi
realpath -s "$env/bin/python"
