#!/usr/bin/env bash
# Runs each libFuzzer program for FUZZ_SECONDS on a copy of its corpus, tests/fuzz/corpus/NAME, as many at a time as there
# are cores; the input of a crash is left beside the program. The last line is: N passed, N failed, N skipped.
set -uo pipefail

seconds=${FUZZ_SECONDS:-20} passed=0 failed=0

# Leaves the exit status in $1.status.
fuzz() {
    local name=$2 found=$1.corpus seeds=()
    mkdir -p "$found"
    [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
    "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$1-" "$found" \
        "${seeds[@]}" > "$1.log" 2>&1
    echo $? > "$1.status"
}

name_of() { basename "$1" | sed 's/^fuzz_//'; }

for program in "$@"; do
    rm -f "$program.status"
    fuzz "$program" "$(name_of "$program")" &
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
done
wait

for program in "$@"; do
    if [ "$(cat "$program.status")" = 0 ]; then
        passed=$((passed + 1))
        printf 'ok     %-32s %s inputs in %s s\n' "$(name_of "$program")" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$program.log")" "$seconds"
    else
        failed=$((failed + 1))
        printf 'FAILED %s\n' "$(name_of "$program")"
        tail -n 60 "$program.log" | sed 's/^/    /'
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
