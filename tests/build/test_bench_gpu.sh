#!/bin/bash
# test_bench_gpu.sh - bench_gpu: its lines, on software SIMT, and what it refuses; and bench_train on a device that it must count examples
# for. BUILD: the build folder.

# shellcheck source=SCRIPTDIR/../common/checks.sh
source "$(dirname "$0")/../common/checks.sh"
build=$(realpath "${BUILD:-build}")
cd "$work" || exit 1

# refuses STATUS TEXT COMMAND...: nothing on standard output, TEXT on standard error.
refuses() {
    "${@:3}" > out 2> err
    if [ $? -ne "$1" ] || ! grep -q -e "$2" err || [ -s out ]; then cat out err; return 1; fi
}

# prints CODE COMMAND...: the Python code is true of o, the command's lines.
prints() { "${@:2}" | python3 -c "import json, sys; o = [json.loads(l) for l in sys.stdin]; assert $1, o"; }
counts() { printf '4 0 8\n4 0.01\n4 0 8\n' | "$build/bench/bench_train" tree-lstm --hidden 8 --embed 8 --examples 100 --device simt --no-tuning; }

check "a line a figure" prints "[x['bench'] for x in o] == ['machine', 'latency', 'latency', 'split'] and o[3]['batch'] == 1 and len(o[3]['total_us']) == 3
assert o[1]['what'] == 'hand-over' and o[2]['what'] == 'barrier' and o[3]['total_us'][1] > 0" "$build/bench/bench_gpu" --device simt --data /nowhere
check "examples that are counted are the first ones" prints "len(o) == 3 and o[0]['nodes'] == o[2]['nodes'] and o[0]['mflop_per_sentence'] == o[2]['mflop_per_sentence']
assert all(x['device_ms'] > 0 and 'peak_gflops' not in x for x in o)" counts
for words in "--device cpu" "--precision fp32" simt; do
    # shellcheck disable=SC2086
    check "$words" refuses 2 'usage: bench_gpu' "$build/bench/bench_gpu" $words
done
check "no driver" refuses 1 'no GPU driver: /nowhere/libcuda.so' env VPPS_LIBCUDA=/nowhere/libcuda.so "$build/bench/bench_gpu"
summary
