#!/usr/bin/env bash
# Runs test programs (Check suites) and test scripts, those before -- one more at a time than there are cores, since some of them mostly wait
# for processes that they have stopped; those after it one after another. Prints a line for each as it ends, with the time that it took and
# the processors' time of all its processes; a failed one's whole output follows its line. The last line: N passed, N failed, N skipped.
#
#     tools/run_tests.sh [PROGRAM|SCRIPT.sh ...] [-- PROGRAM|SCRIPT.sh ...]
#
# A Check suite ends with "N%: Checks: N, Failures: N, Errors: N", a script with "N passed, N failed, N skipped". One that ends otherwise,
# exits badly or checks nothing counts as a failure. What a suite did not check here, it says: in a line "skipped: WHY" for each of its checks
# that did nothing, "left out: WHY" for what is beside them. Both count as skipped, and the reasons follow the test's line. TEST_LIMIT is the
# time limit of each, in seconds of processor time of a process; it may last three times as long, since a busy machine lets it wait. What
# failed is named before the last line. LEFT_OUT names tests that are not run; each counts as skipped. TOGETHER names programs whose checks
# share one process, rather than each having its own.
set -uo pipefail

limit=${TEST_LIMIT:-600}
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-60}
export VPPS_CACHE_DIR=${VPPS_CACHE_DIR:-$(realpath -m "${BUILD:-build}")/cache}
export VPPS_PROBE_MS=${VPPS_PROBE_MS:-100000} # products are measured however slow a sanitizer or a machine is
if [ -z "${VPPS_CXX:-}" ] && command -v clang++ > /dev/null; then export VPPS_CXX=clang++; fi # half of g++'s time
if head -n 1 "$(command -v python3)" 2> /dev/null | grep -qa '^#!'; then PATH=$(dirname "$(python3 -c 'import sys; print(sys.executable)')"):$PATH; fi # not by a script of pyenv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TIMEFORMAT='%U %S'

# Runs test number $1, $2. Writes $1.line, and "passed failed skipped" to $1.counts; $1.output is what it printed.
run_one() {
    local test=$2 output=$work/$1.output command=("$2") good=0 bad=0 none=0 code start elapsed used summary note='' word=ok
    [[ $test != *.sh ]] || command=(bash "$test")
    if [[ " ${TOGETHER:-} " == *" $test "* ]]; then command=(env CK_FORK=no "$test"); fi
    start=$(date +%s%N)
    {
        time (ulimit -S -t "$limit" && timeout --kill-after=10 $((3 * limit)) "${command[@]}" > "$output" 2>&1 < /dev/null; exit $?) # exec would not be timed
        code=$?
    } 2> "$work/$1.time"
    used=$(awk 'END { printf "%.2f", $1 + $2 }' "$work/$1.time")
    elapsed=$((($(date +%s%N) - start) / 1000000))

    if [[ $test == *.sh ]]; then
        summary=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$output" | tail -n 1)
        [[ $summary =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]] &&
            good=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]} none=${BASH_REMATCH[3]}
    else
        # A program may run several suites; each prints a summary.
        while read -r line; do
            [[ $line =~ Checks:\ ([0-9]+),\ Failures:\ ([0-9]+),\ Errors:\ ([0-9]+) ]] || continue
            bad=$((bad + BASH_REMATCH[2] + BASH_REMATCH[3]))
            good=$((good + BASH_REMATCH[1] - BASH_REMATCH[2] - BASH_REMATCH[3]))
        done < <(grep -E '^[0-9]+%: Checks: ' "$output")
        none=$(grep -c '^skipped: ' "$output")
        good=$((good - none)) none=$((none + $(grep -c '^left out: ' "$output")))
    fi

    if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
        note="  stopped after $((3 * limit)) s" bad=$((bad + 1))
    elif [ "$code" -eq 152 ]; then # SIGXCPU
        note="  stopped after $limit s of processor time" bad=$((bad + 1))
    elif [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
        note="  exit status $code" bad=1
    elif [ $((good + bad + none)) -eq 0 ]; then
        note="  checked nothing" bad=1
    fi
    [ "$bad" -eq 0 ] || word=FAILED
    echo "$test $used" > "$work/$1.time"
    {
        printf '%-6s %-44s %4d passed, %d failed, %d skipped  %3d.%03d s, processors %s s%s\n' "$word" \
            "${test#"${BUILD:-build}"/}" "$good" "$bad" "$none" $((elapsed / 1000)) $((elapsed % 1000)) "$used" "$note"
        sed -nE 's/^(skipped|left out): (.*)/       skipped: \2/p' "$output" | sort | uniq -c |
            sed -E 's/^ +1 //; s/^ +([0-9]+) (.*)/\2 (\1 times)/'
    } > "$work/$1.line"
    echo "$good $bad $none" > "$work/$1.counts"
}

passed=0 failed=0 skipped=0 names=

# Prints and counts the tests that have ended since.
report() {
    local counts good bad none
    for counts in "$work"/*.counts; do
        [ -e "$counts" ] || continue
        read -r good bad none < "$counts"
        cat "${counts%.counts}.line"
        if [ "$bad" -ne 0 ]; then
            sed 's/^/    /' "${counts%.counts}.output"
            names+=$(sed -nE '1s/^(FAILED +[^ ]+).*/\1/p' "${counts%.counts}.line" && grep -E '^FAILED: |:[EF]:' "${counts%.counts}.output" | head -n 9 | sed 's/^/       /')$'\n'
        fi
        passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + none))
        rm "$counts"
    done
}

jobs=$(($(nproc) + 1)) number=0
for test in "$@"; do
    number=$((number + 1))
    if [ "$test" = -- ]; then
        jobs=1
        wait
        report
        continue
    fi
    run_one "$number" "$test" &
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
        report
    done
done
wait
report

for test in ${LEFT_OUT:-}; do
    printf 'skip   %s\n' "${test#"${BUILD:-build}"/}"
    skipped=$((skipped + 1))
done

if [ -d "${BUILD:-build}" ]; then # each test's last time, for tools/quick.py
    cat "${BUILD:-build}/times" "$work"/*.time 2> /dev/null | awk '!/^\// { last[$1] = $2 } END { for (t in last) print t, last[t] }' > "$work/times"
    mv "$work/times" "${BUILD:-build}/times"
fi

[ $((passed + failed)) -gt 0 ] || { echo "no test was run" >&2; failed=1; }
printf '%s' "$names"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
