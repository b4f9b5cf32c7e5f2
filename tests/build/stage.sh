# shellcheck shell=bash
# For the tests in this folder: checks that count, and an install staged in a temporary folder. Sourced.
#
# After `stage`: $root is the DESTDIR, $prefix the installed tree in it, and `pc` asks pkg-config about that tree.
set -uo pipefail

MAKE=${MAKE:-make}
BUILD=${BUILD:-build}
CC=${CC:-cc}
passed=0 failed=0 skipped=0

# check NAME COMMAND...: one check; its output is shown when it fails.
check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'failed: %s\n%s\n' "$name" "$output"
    fi
}

# skip NAME WHY: a check that cannot be made here.
skip() {
    skipped=$((skipped + 1))
    echo "skipped: $1: $2"
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
