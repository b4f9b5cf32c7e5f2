# shellcheck shell=bash
# For the tests in this folder: an install staged in the scratch folder. Sourced.
#
# After `stage`: $root is the DESTDIR, $prefix the installed tree in it, and `pc` asks pkg-config about that tree.
set -uo pipefail
# shellcheck source=SCRIPTDIR/../common/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/checks.sh"

MAKE=${MAKE:-make}
BUILD=${BUILD:-build}
CC=${CC:-cc}
root=$work/root prefix=$work/root/opt/vpps

make_here() { "$MAKE" --no-print-directory -s BUILD="$BUILD" DESTDIR="$root" PREFIX=/opt/vpps "$@"; }
stage() { check "make install" make_here install; }
pc() { PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --define-variable=prefix="$prefix" "$@" vpps; }

# compile_shared, compile_static PROGRAM SOURCE: against the staged install only, as a user's Makefile would.
compile_shared() {
    # shellcheck disable=SC2046
    "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$1" "$2" $(pc --cflags --libs)
}
compile_static() {
    # shellcheck disable=SC2046
    "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$1" "$2" $(pc --cflags) \
        $(pc --static --libs | sed 's/-lvpps/-l:libvpps.a/')
}
