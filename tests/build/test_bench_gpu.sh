#!/bin/bash
# test_bench_gpu.sh - what bench_gpu refuses; it is a model of a GPU that predicts, and nothing else. BUILD: the build folder.
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

refuses 1 'Fake GPU is no model of a GPU' -- "--model=$build/tests/fake_cuda.so"
refuses 1 'Fake GPU is no model of a GPU' "VPPS_LIBCUDA=$build/tests/fake_cuda.so" -- --model
refuses 1 'no GPU driver: /nowhere/libcuda.so' -- --model=/nowhere/libcuda.so
refuses 2 'usage: bench_gpu' -- --model --most 0
refuses 2 'usage: bench_gpu' -- --model --device cuda
refuses 2 'usage: bench_gpu' -- --model --precision fp8
refuses 2 'usage: bench_gpu' -- --device simt --precision bf8
refuses 1 'no GPU driver: /nowhere/libcuda.so' VPPS_LIBCUDA=/nowhere/libcuda.so --

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
