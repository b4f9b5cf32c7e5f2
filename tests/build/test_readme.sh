#!/usr/bin/env bash
# README.md's trainer, its first C block: at most 60 lines, compiled against an installed VPPS, and run.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

trainer=$BUILD/readme_trainer
awk '/^```c$/ && !block { block = 1; next } /^```/ && block == 1 { block = 2 } block == 1' README.md > "$trainer.c"
lines=$(wc -l < "$trainer.c")
check "README.md has a C block" test "$lines" -gt 0
check "it has at most 60 lines ($lines)" test "$lines" -le 60

stage
check "it compiles, shared" compile_shared "$trainer" "$trainer.c"
check "it runs, shared" env LD_LIBRARY_PATH="$prefix/lib" timeout 120 "$trainer"
check "it compiles, static" compile_static "$trainer" "$trainer.c"
check "it runs, static" timeout 120 "$trainer"
finish
