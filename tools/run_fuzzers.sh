#!/usr/bin/env bash
# Runs each libFuzzer program for FUZZ_SECONDS on a copy of its corpus, tests/fuzz/corpus/NAME; the input of a crash
# is left beside the program. The last line is: N passed, N failed, N skipped.
set -uo pipefail

seconds=${FUZZ_SECONDS:-20}
passed=0 failed=0
for program in "$@"; do
    name=$(basename "$program")
    name=${name#fuzz_}
    found=$program.corpus
    mkdir -p "$found"
    seeds=()
    [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
    if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$program-" "$found" "${seeds[@]}" > "$program.log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok     %-32s %s inputs in %s s\n' "$name" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$program.log")" "$seconds"
    else
        failed=$((failed + 1))
        printf 'FAILED %s\n' "$name"
        tail -n 60 "$program.log" | sed 's/^/    /'
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
