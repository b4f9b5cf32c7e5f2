#!/usr/bin/env bash
# What tools/run_tests.sh and .ci/run count: checks that passed, failed, and were skipped; and which tests tools/quick.py chooses. The last
# line is "N passed, N failed, N skipped".
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

# suite NAME LINE...: a program that prints these lines, as a Check suite would.
suite() {
    { echo '#!/bin/sh'; printf 'echo "%s"\n' "${@:2}"; } > "$work/$1"
    chmod +x "$work/$1"
}
suite good 'Running suite(s): good' '100%: Checks: 5, Failures: 0, Errors: 0'
suite none 'skipped: a: no data' 'skipped: b: no data' '100%: Checks: 2, Failures: 0, Errors: 0'
suite some 'left out: c: one core' 'skipped: d: no compiler' 'skipped: d: no compiler' 'a line of a check that was skipped: no' \
    '75%: Checks: 4, Failures: 1, Errors: 0'
suite beside 'left out: everything' '100%: Checks: 0, Failures: 0, Errors: 0'
suite empty '100%: Checks: 0, Failures: 0, Errors: 0'
suite script.sh 'skipped: e: no tool' '3 passed, 0 failed, 1 skipped'
suite old.sh '3 passed, 0 failed'

# counts STATUS SUM TEST...: the sum that is printed for these.
counts() {
    local status=$1 sum=$2
    shift 2
    LEFT_OUT=$left_out tools/run_tests.sh "${@/#/$work/}" > "$work/out" 2>&1
    if [ $? -ne "$status" ] || [ "$(tail -n 1 "$work/out")" != "$sum" ]; then
        cat "$work/out"
        return 1
    fi
}
left_out=
check "a suite" counts 0 "5 passed, 0 failed, 0 skipped" good
check "a suite without its data" counts 0 "5 passed, 0 failed, 2 skipped" good none
check "a suite without some of it" counts 1 "6 passed, 1 failed, 3 skipped" good some
check "the reasons are told" grep -qF 'skipped: d: no compiler (2 times)' "$work/out"
named() { # before the last line: what failed, with its checks
    counts 1 "9 passed, 3 failed, 3 skipped" good some failing.sh &&
        diff <(printf '%s\n' "FAILED $work/some" "FAILED $work/failing.sh" "       FAILED: this one" | sort) <(tail -n 4 "$work/out" | head -n 3 | sort)
}
suite failing.sh 'FAILED: this one' '3 passed, 2 failed, 0 skipped'
check "what failed is named at the end" named
check "of a suite that is left out, too" counts 0 "5 passed, 0 failed, 1 skipped" good beside
check "nothing checked and nothing skipped is a failure" counts 1 "5 passed, 1 failed, 0 skipped" good empty
check "a script" counts 0 "3 passed, 0 failed, 1 skipped" script.sh
check "a script that does not count what it skips is a failure" counts 1 "0 passed, 1 failed, 0 skipped" old.sh
left_out="gpu slow.sh"
check "tests that are not run" counts 0 "5 passed, 0 failed, 2 skipped" good

# .ci/run on parts that count.
mkdir -p "$work/tree/.ci" "$work/tree/tools" "$work/bin"
cp .ci/run "$work/tree/.ci/"
printf '#!/bin/sh\n' > "$work/tree/tools/setup.sh"
printf '#!/bin/sh\necho "10 passed, 0 failed, 2 skipped"\n' > "$work/bin/make"
chmod +x "$work/tree/tools/setup.sh" "$work/bin/make"
parts=$(grep -c '^part ' .ci/run)
ci() { PATH=$work/bin:$PATH "$work/tree/.ci/run" | tail -n 1; }
check "all parts, and two builds of three left out" test "$(ci)" = "$((10 * parts)) passed, 0 failed, $((2 * parts + 2)) skipped"

# tools/quick.py: the tests closest to a change.
closest() { BUILD=${BUILD:-build} tools/quick.py --list "$1" > "$work/out" && sed -n '1s/.* //p' "$work/out" | grep -qx "$2"; }
check "a source's header is in its test" closest src/runtime/simt/compiler.c '.*/tests/runtime_test_simt'
check "a script names what it tests" closest src/cli/commands/export_c.c tests/cli/test_export_c.sh
check "a test is its own" closest tests/script/test_deal.c '.*/tests/script_test_deal'
summary
