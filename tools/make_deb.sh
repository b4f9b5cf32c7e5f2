#!/usr/bin/env bash
# Makes the Debian packages in $BUILD/deb from a copy of the sources, with dpkg-buildpackage, and checks them with lintian:
# a warning fails. debian/changelog must name the version of include/vpps.h.
#
#     BUILD=build tools/make_deb.sh
#
# VPPS_DEB_OBJECTS=FOLDER packs what is built there already, as a test does, instead of building it anew with Debian's flags.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^#define VPPS_VERSION "\(.*\)"/\1/p' include/vpps.h)
if [ "$(dpkg-parsechangelog -S Version)" != "$version" ]; then
    echo "make_deb: debian/changelog is of $(dpkg-parsechangelog -S Version), include/vpps.h of $version" >&2
    exit 1
fi
out=$(realpath -m "${DEB_OUT:-${BUILD:-build}/deb}")
rm -rf "$out"
mkdir -p "$out/vpps-$version"
tar -c --exclude-vcs --exclude='./build' --exclude='./build-*' --exclude='__pycache__' . | tar -x -C "$out/vpps-$version"
cd "$out/vpps-$version"
MAKEFLAGS='' dpkg-buildpackage -b -us -uc -rfakeroot > "$out/log" 2>&1 || { tail -n 40 "$out/log" >&2; exit 1; }
rm -rf "$out/vpps-$version"
cd "$out"
ls ./*.deb
lintian --fail-on error,warning ./*.changes
