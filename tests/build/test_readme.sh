#!/usr/bin/env bash
# README.md's trainer, its first C block: at most 60 lines, compiled against an installed VPPS, and run.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

trainer=$BUILD/readme_trainer
awk '/^```c$/ && !block { block = 1; next } /^```/ && block == 1 { block = 2 } block == 1' README.md > "$trainer.c"
lines=$(wc -l < "$trainer.c")
check "README.md has a C block" test "$lines" -gt 0
check "it has at most 60 lines ($lines)" test "$lines" -le 60

# The commands after it, as they are written there, with another home folder.
awk '/^```c$/ { seen = 1 } seen && /^    make && make install/ { block = 1 } block && !/^    / { exit } block { sub(/^    /, ""); print }' \
    README.md > "$work/commands"
check "the README installs and compiles it" grep -q 'pkg-config' "$work/commands"
# shellcheck disable=SC2317 # the commands call make and cc
as_written() (
    repository=$PWD
    make() { command "$MAKE" --no-print-directory -s -C "$repository" BUILD="$BUILD" "$@"; }
    cc() { command "$CC" "$@"; }
    export HOME=$work/home
    unset LD_LIBRARY_PATH PKG_CONFIG_PATH
    cp "$trainer.c" "$work/trainer.c"
    cd "$work" || exit 1
    set -e
    # shellcheck source=/dev/null
    . "$work/commands"
)
check "and it runs, as written" timeout 900 bash -c "$(declare -f as_written); work='$work' trainer='$(realpath -m "$trainer")' \
    MAKE='$MAKE' BUILD='$BUILD' CC='$CC'; as_written"
check "in the home folder" test -x "$work/home/.local/bin/vpps"
summary
