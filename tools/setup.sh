#!/usr/bin/env bash
# Installs the packages that the given groups need and the machine lacks; asks nothing when all are there.
#
#     tools/setup.sh [build] [test] [bench] [deb] [users] [lint] [fuzz] [valgrind]
set -euo pipefail

packages_of() {
    case $1 in
    build) echo gcc libc6-dev make pkg-config libjansson-dev libxxhash-dev zlib1g-dev libzstd-dev ;;
    test) echo check libsubunit-dev python3 python3-venv python3-dev g++ clang openmpi-bin libopenmpi-dev mpich libmpich-dev ;;
    bench) if [ "$(uname -m)" = x86_64 ]; then echo libxsmm-dev; fi ;; # a peer to measure the kernels beside
    deb) echo debhelper dpkg-dev fakeroot lintian ;;
    users) echo cmake fish zsh ;; # what tests try installed files with, where it is there
    lint) echo clang-format clang-tidy shellcheck mandoc python3 ;;
    fuzz) echo clang libclang-rt-dev ;;
    valgrind) echo valgrind libc6-dbg ;;
    *) echo "setup: unknown group '$1' (build, test, bench, deb, users, lint, fuzz, valgrind)" >&2; return 2 ;;
    esac
}

wanted=()
for group in "${@:-build}"; do
    list=$(packages_of "$group")
    read -r -a names <<< "${list//$'\n'/ }"
    wanted+=("${names[@]}")
done

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
    echo "setup: this is neither Debian nor Ubuntu; VPPS needs what these packages hold there: ${wanted[*]}" >&2
    exit 0
fi

missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
        echo "setup: missing: ${missing[*]}. Install them as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
    echo "setup: installing ${missing[*]} with sudo"
else
    echo "setup: installing ${missing[*]}"
fi

install_missing() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# The package lists are fetched only when there are none, or when they are too old to install from.
if ! apt-cache show "${missing[@]}" > /dev/null 2>&1 || ! install_missing; then
    "${as_root[@]}" apt-get update -q
    install_missing
fi
