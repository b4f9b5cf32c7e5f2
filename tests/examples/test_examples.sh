#!/usr/bin/env bash
# Every example in C: compiled as its first comment says, without a warning, and run to what it says that it reaches. README.md's
# trainers are examples, too, letter by letter.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/../build/stage.sh"

libs=$(sed -n 's/^LIBS *:= *//p' Makefile)
for source in examples/*.c; do
    name=$(basename "$source" .c)
    # shellcheck disable=SC2086
    check "$name compiles" "$CC" -std=c11 -O2 -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -o "$work/$name" "$source" \
        "$BUILD/libvpps.a" -pthread $libs
    check "$name reaches what it says" timeout 900 "$work/$name"
done
check "without its memory truncated_bptt does not" timeout 900 "$work/truncated_bptt" --forget
block() { awk -v fence="^\`\`\`$1\$" '$0 ~ fence && !n { n = 1; next } /^```/ && n == 1 { n = 2 } n == 1' README.md; }
check "the trainer of README.md is examples/trainer.c" diff <(block c) examples/trainer.c
check "that in Python is examples/trainer.py" diff <(block python) <(sed '1,2d' examples/trainer.py)
summary
