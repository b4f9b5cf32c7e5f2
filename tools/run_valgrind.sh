#!/usr/bin/env bash
# Runs a command under valgrind: a wrong access, a use of an undefined value or a leak fails. The last line is:
# N passed, N failed, N skipped.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if valgrind --fair-sched=try --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible \
    --errors-for-leak-kinds=definite,indirect,possible "$@" > "$log" 2>&1 < /dev/null; then
    grep -E 'ERROR SUMMARY|total heap usage' "$log"
    echo "1 passed, 0 failed, 0 skipped"
else
    cat "$log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
