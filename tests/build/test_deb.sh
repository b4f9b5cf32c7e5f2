#!/usr/bin/env bash
# make deb: three packages that lintian has nothing against, and that work where they are unpacked. What is built is packed, not
# built anew.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

for tool in dpkg-buildpackage dh fakeroot lintian; do
    command -v "$tool" > /dev/null && continue
    skip "make deb" "no $tool (tools/setup.sh deb)"
    summary
    exit
done

export DEB_OUT=$work/deb VPPS_DEB_OBJECTS DEB_BUILD_OPTIONS='noautodbgsym terse'
VPPS_DEB_OBJECTS=$(realpath "$BUILD")
version=$(sed -n 's/^#define VPPS_VERSION "\(.*\)"/\1/p' include/vpps.h)
check "dpkg-buildpackage and lintian" tools/make_deb.sh
for package in libvpps0 libvpps-dev vpps; do
    deb=$(find "$work/deb" -name "${package}_${version}_*.deb")
    check "$package" test -s "$deb"
    check "$package can be unpacked" dpkg -x "$deb" "$work/root"
done
library=$(dirname "$(find "$work/root" -name 'libvpps.so')")
check "the command runs" test "$("$work/root/usr/bin/vpps" --version)" = "vpps $version"
check "the library is there" test -s "$library/libvpps.so.$version"
check "by the name that programs ask for" test -e "$library/libvpps.so.0"
# shellcheck disable=SC2016 # the file says so
check "pkg-config's file names no build folder" grep -qx 'libdir=${prefix}/lib/[a-z0-9_-]*' "$library/pkgconfig/vpps.pc"
check "nor a run path" test "$(grep -c rpath "$library/pkgconfig/vpps.pc")" = 0
check "CMake's files" test -s "$library/cmake/vpps/vppsConfig.cmake"
for file in man/man1/vpps.1.gz bash-completion/completions/vpps zsh/vendor-completions/_vpps; do
    check "$file" test -s "$work/root/usr/share/$file"
done
check "the library's package is named by its version of the interface" \
    grep -q "^Package: libvpps$(readelf -d "$library/libvpps.so" | sed -n 's/.*libvpps.so.\([0-9]*\).*/\1/p')\$" debian/control
summary
