#!/usr/bin/env bash
# make install and uninstall: the files are there, a program compiles against them, nothing stays behind.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

stage
version=$(sed -n 's/^#define VPPS_VERSION "\(.*\)"/\1/p' include/vpps.h)
for file in bin/vpps lib/libvpps.a lib/libvpps.so lib/libvpps.so.0 "lib/libvpps.so.$version" include/vpps.h \
    include/vpps_data.h include/vpps_export.h lib/pkgconfig/vpps.pc lib/cmake/vpps/vppsConfig.cmake lib/cmake/vpps/vppsConfigVersion.cmake \
    share/man/man1/vpps.1 share/bash-completion/completions/vpps \
    share/zsh/site-functions/_vpps; do
    check "$file is installed" test -s "$prefix/$file"
done

check "the installed command runs" "$prefix/bin/vpps" --version
check "pkg-config knows the version" test "$(pc --modversion)" = "$version"
check "the package file names the prefix, not the stage" \
    grep -qx 'prefix=/opt/vpps' "$prefix/lib/pkgconfig/vpps.pc"

exports=$(nm -D --defined-only "$prefix/lib/libvpps.so" | awk '{ print $3 }')
check "the shared library exports vpps_version" grep -qx vpps_version <<< "$exports"
check "the shared library exports vpps_ names only" test -z "$(grep -v '^vpps_' <<< "$exports")"

# Every function of the headers is taken, so an undefined one fails to link.
{
    printf '#include <vpps_data.h>\n#include <vpps_export.h>\n#include <stdio.h>\n\ntypedef void function(void);\n'
    printf 'static function *const functions[] = {\n'
    sed -nE 's/^VPPS_API [^(]*[ *](vpps_[a-z0-9_]+)\(.*/    (function *)\1,/p' include/*.h
    printf '};\n\nint main(void) {\n    size_t n = 0;\n'
    printf '    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) n += functions[i] != 0;\n'
    printf '    printf("%%s %%zu\\n", vpps_version(), n);\n    return 0;\n}\n'
} > "$work/user.c"
functions=$(grep -c '(function \*)' "$work/user.c")
check "the headers declare functions" test "$functions" -gt 50

check "compiles and links, shared" compile_shared "$work/shared" "$work/user.c"
check "runs, shared" env LD_LIBRARY_PATH="$prefix/lib" "$work/shared"
check "prints version and functions, shared" \
    test "$(LD_LIBRARY_PATH=$prefix/lib "$work/shared")" = "$version $functions"
check "compiles and links, static" compile_static "$work/static" "$work/user.c"
check "prints version and functions, static" test "$("$work/static")" = "$version $functions"
check "the static program needs no libvpps.so" sh -c "! ldd '$work/static' | grep -q libvpps"
documented() { # the manual's command for a program that needs no file of VPPS
    sed -n '/^With the library inside/,/^CMake/s/^    //p' doc/library.md | sed "s|trainer.c|$work/user.c|; s|-o trainer|-o $work/inside|" >"$work/link" &&
        PKG_CONFIG_PATH="$prefix/lib/pkgconfig" bash -c "$(sed 's/pkg-config/pkg-config --define-prefix/g' "$work/link")" &&
        test "$("$work/inside")" = "$version $functions" && ! ldd "$work/inside" | grep -q libvpps
}
check "the manual's static link" documented
check "pkg-config names a run path" sh -c "pkg-config --libs '$prefix/lib/pkgconfig/vpps.pc' | grep -q -- '-Wl,-rpath,/opt/vpps/lib'"

# A small project of CMake's, as one would write it, with both libraries.
if command -v cmake > /dev/null; then
    mkdir "$work/project"
    cat > "$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(vpps 0.1 REQUIRED)
add_executable(shared ../user.c)
target_link_libraries(shared vpps::vpps)
add_executable(static ../user.c)
target_link_libraries(static vpps::static)
CMAKE
    check "cmake configures" cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$CC"
    check "cmake builds" cmake --build "$work/project/build"
    check "what it built runs, shared" test "$("$work/project/build/shared")" = "$version $functions"
    check "what it built runs, static" test "$("$work/project/build/static")" = "$version $functions"
    check "the shared program asks for libvpps.so.0" sh -c "readelf -d '$work/project/build/shared' | grep -q 'NEEDED.*libvpps.so.0'"
    sed -i 's/vpps 0.1/vpps 7/' "$work/project/CMakeLists.txt"
    check "another version is not taken" sh -c "! cmake -S '$work/project' -B '$work/project/other' \
        -DCMAKE_PREFIX_PATH='$prefix' 2>&1 | grep -q 'Build files have been written'"
else
    skip "a project of CMake's" "no cmake"
fi
for header in vpps vpps_data; do
    printf '#include <%s.h>\n' "$header" > "$work/alone.c"
    check "$header.h stands alone" "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only \
        "$work/alone.c"
done
if command -v c++ > /dev/null; then
    check "the headers are C++, too" c++ -x c++ -std=c++11 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only \
        "$work/alone.c"
else
    skip "the headers are C++, too" "no c++"
fi

check "make uninstall" make_here uninstall
check "uninstall leaves no file" test -z "$(find "$root" ! -type d)"
summary
