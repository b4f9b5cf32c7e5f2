#!/usr/bin/env bash
# What python/standins has instead of zlib and libzstd: the library's own tests of compressed files and
# checkpoints pass with them.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/../build/stage.sh"

flags=(-std=c11 -D_GNU_SOURCE= -O2 -Wall -Wextra -Werror -fPIC)
includes=(-Iinclude -Isrc -Imodels -Itests)

sources=(src/io/decompress.c src/io/safetensors_read.c src/io/safetensors_write.c)
for source in "${sources[@]}"; do
    check "$source compiles with stand-ins" "$CC" "${flags[@]}" -Ipython/standins "${includes[@]}" -c "$source" \
        -o "$work/$(basename "$source" .c).o"
done
headers_used() { grep -roE '^#include <(jansson|zlib|zstd)\.h>' include src models | grep -v '^src/cli/'; }
check "the library takes both, in one file, and no other" test "$(headers_used)" = "$(printf 'src/io/decompress.c:#include <%s.h>\n' zlib zstd)"

libs=$(sed -n 's/^LIBS *:= *//p' Makefile)
# shellcheck disable=SC2046,SC2086
check "the tests of files link with them" "$CC" -o "$work/test_io" "$BUILD"/obj/tests/io/*.o "$BUILD"/obj/tests/common/*.o \
    "$work"/{decompress,safetensors_read,safetensors_write}.o "$BUILD"/obj/models/*.o "$BUILD/libvpps.a" \
    $(pkg-config --libs check 2> /dev/null || echo -lcheck) -pthread $libs
for name in compressed safetensors; do
    run_case() { CK_RUN_CASE=$1 "$work/test_io" | tee "$work/log" && grep -qE '^100%: Checks: [1-9]' "$work/log"; }
    check "they pass: $name" run_case "$name"
done
summary
