#!/usr/bin/env bash
# doc/own-network.md: its file compiled, named in the table as it says, linked with what is built, and its commands run.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

repository=$PWD doc=$PWD/doc/own-network.md
mkdir "$work/models" "$work/bin" "$work/run"
awk '/^```c$/ { block = 1; next } /^```/ { block = 0 } block' "$doc" > "$work/models/tree_sum.c"
check "it has a file" grep -q 'tree_sum' "$work/models/tree_sum.c"
cp models/models.c "$work/models"
named() { (cd "$work" && bash -c "$(sed -n 's/^    \(sed -i .*\)/\1/p' "$doc")" && grep -q 'X(tree_sum)' models/models.c); }
check "it is named in the table as the text says" named

objects=$(find src/cli models -name '*.[cS]' ! -name models.c | sed "s|.*|$BUILD/obj/&|; s|[cS]\$|o|")
libs=$(sed -n 's/^LIBS *:= *//p' Makefile)
# shellcheck disable=SC2086
check "it compiles without a warning, and links" "$CC" -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -Imodels -pthread \
    -o "$work/bin/vpps" "$work/models/tree_sum.c" "$work/models/models.c" $objects "$BUILD/libvpps.a" $libs
run_doc() { (cd "$work/run" && PATH=$work/bin:$PATH python3 "$repository/tests/common/run_doc.py" "$doc"); }
check "its commands print what stands there" run_doc
check "the README names it" grep -qF doc/own-network.md README.md
summary
