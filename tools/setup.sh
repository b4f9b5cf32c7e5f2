#!/usr/bin/env bash
# Installs the packages that the given groups need and the machine lacks; asks nothing when all are there.
#
#     tools/setup.sh [build] [test] [bench] [deb] [users] [lint] [fuzz] [valgrind] [emulated]
set -euo pipefail

packages_of() {
    case $1 in
    build) echo gcc libc6-dev make pkg-config libjansson-dev zlib1g-dev libzstd-dev ;;
    test) echo check libsubunit-dev python3 python3-venv python3-dev g++ clang librsvg2-bin openmpi-bin libopenmpi-dev mpich libmpich-dev ;;
    bench) echo python3 ;;
    deb) echo debhelper dpkg-dev fakeroot lintian ;;
    users) echo cmake zsh ;; # what tests try installed files with, where it is there
    lint) echo clang-format clang-tidy shellcheck mandoc python3 ;;
    fuzz) echo clang libclang-rt-dev ;;
    valgrind) echo valgrind libc6-dbg ;;
    emulated) # other processors: a compiler and libraries for 64-bit ARM, and what runs them
        echo qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross
        printf '%s:arm64\n' libjansson-dev zlib1g-dev libzstd-dev check libsubunit-dev
        ;;
    *) echo "setup: unknown group '$1' (build, test, bench, deb, users, lint, fuzz, valgrind, emulated)" >&2; return 2 ;;
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

# A name without an architecture means this machine's.
native=$(dpkg --print-architecture)
missing=()
for package in "${wanted[@]}"; do
    states=$(dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "${package%:*}" 2> /dev/null || true)
    case $package in
    *:*) regex="^${package#*:} installed$" ;;
    *) regex="^($native|all) installed$" ;;
    esac
    grep -qE "$regex" <<< "$states" || missing+=("$package")
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

for package in "${missing[@]}"; do
    foreign=${package##*:}
    if [ "$foreign" != "$package" ] && ! dpkg --print-foreign-architectures | grep -qx "$foreign"; then
        "${as_root[@]}" dpkg --add-architecture "$foreign"
    fi
done

# The package lists are fetched only when there are none, or when they are too old to install from.
if ! apt-cache show "${missing[@]}" > /dev/null 2>&1 || ! install_missing; then
    "${as_root[@]}" apt-get update -q
    install_missing
fi
