#!/bin/bash
# test_bench_gpu.sh - bench_gpu: its lines, on software SIMT, and what it refuses; and bench_train on a device that it must count examples
# for. BUILD: the build folder.
# Prints a line for every failure; the last line is "N passed, N failed, N skipped".

build=$(realpath "${BUILD:-build}")
passed=0
failed=0

# refuses STATUS TEXT VARIABLE=VALUE... -- OPTION...: nothing on standard output, TEXT on standard error.
refuses() {
    local want=$1 text=$2 settings=() out status
    shift 2
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    out=$(env "${settings[@]}" "$build/bench/bench_gpu" "$@" 2>&1 > /dev/null)
    status=$?
    if [ "$status" -eq "$want" ] && grep -q -e "$text" <<< "$out" &&
        [ -z "$(env "${settings[@]}" "$build/bench/bench_gpu" "$@" 2> /dev/null)" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: exit status %d, not %d, or other text: %s\n%s\n' "$status" "$want" "$*" "$out"
    fi
}

# prints WHAT CODE COMMAND...: the Python code is true of o, the command's lines.
prints() {
    if "${@:3}" | python3 -c "import json, sys; o = [json.loads(l) for l in sys.stdin]; assert $2, o"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
    fi
}
counts() { printf '4 0 8\n4 0.01\n4 0 8\n' | "$build/bench/bench_train" tree-lstm --hidden 8 --embed 8 --examples 100 --device simt --no-tuning; }

prints "a line a figure" "[x['bench'] for x in o] == ['machine', 'latency', 'latency', 'split'] and o[3]['batch'] == 1 and len(o[3]['total_us']) == 3
assert o[1]['what'] == 'hand-over' and o[2]['what'] == 'barrier' and o[3]['total_us'][1] > 0" "$build/bench/bench_gpu" --device simt --data /nowhere
prints "examples that are counted are the first ones" "len(o) == 3 and o[0]['nodes'] == o[2]['nodes'] and o[0]['mflop_per_sentence'] == o[2]['mflop_per_sentence']
assert all(x['device_ms'] > 0 and 'peak_gflops' not in x for x in o)" counts
refuses 2 'usage: bench_gpu' -- --device cpu
refuses 2 'usage: bench_gpu' -- --precision fp32
refuses 2 'usage: bench_gpu' -- simt
refuses 1 'no GPU driver: /nowhere/libcuda.so' VPPS_LIBCUDA=/nowhere/libcuda.so --

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
