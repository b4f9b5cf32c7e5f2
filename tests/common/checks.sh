# shellcheck shell=bash
# checks.sh - what tests in shell share: a scratch folder, $work, and checks that count. To be sourced. A line is printed for every
# failure; the last line is "N passed, N failed, N skipped".

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# check WHAT COMMAND...: the command must succeed. It runs in this shell, so a function can leave variables; its output is shown when it fails.
check() {
    local what=$1
    shift
    if "$@" > "$work/check.out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        sed 's/^/    /' "$work/check.out" | head -n 40
    fi
}

# skip WHAT WHY [NUMBER]: so many checks (1) that cannot be made here.
skip() {
    skipped=$((skipped + ${3:-1}))
    echo "skipped: $1: $2"
}

# The last line of a test, and its exit status.
summary() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
