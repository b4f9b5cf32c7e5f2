#!/usr/bin/env bash
# Trains every network for two small batches on a model of a GPU, by the very code that drives a GPU, and on the CPU: the
# losses must agree. The model (GPU_MODEL: its sources) stands in for libcuda.so.1, executes the machine code that NVRTC made,
# and here also ends a launch that reads what its L1 cache has kept although L2 holds something newer.
#
#     tools/check_gpu_model.sh [NETWORK...]        make check-gpu-model
#
# PRECISIONS: of products, each on both. Unless set, networks take turns in bf16x3 and fp32, the other way round than in
# tests/codegen/test_kernels.sh; with VPPS_TEST_SCALE=full each is trained in both. VPPS_TEST_PART: a share of them (tools/share.sh). BUILD: where the model is built, in gpumodel/. VPPS: the command. GPUMODEL_SMS, GPUMODEL_STORE_JITTER and the like are the
# model's own settings. What cannot be run here is skipped and counted so. Prints a line a network; the last line is
# "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tools/share.sh

build=${BUILD:-build}
vpps=${VPPS:-$build/vpps}
sources=${GPU_MODEL:-../shared/tools/gpumodel}
model=$(realpath -m "$build/gpumodel")
tolerance=1e-5 # of a loss
limit=900      # seconds a network and device
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${VPPS_TEST_SCALE:-}" = full ]; then PRECISIONS=${PRECISIONS:-fp32 bf16x3}; fi
networks=("$@")
[ $# -gt 0 ] || mapfile -t networks < <("$vpps" help | sed -n '/^Networks:/,/^$/s/^  \([a-z][a-z0-9-]*\).*/\1/p')
if [ "${#networks[@]}" -eq 0 ]; then
    echo "no networks: $vpps help lists none"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi

# Pairs of a network and a precision.
runs=() turns=(bf16x3 fp32) others=0
for ((i = 0; i < ${#networks[@]}; i++)); do
    share $((i / 2)) || { others=$((others + 1)); continue; } # of both precisions
    for precision in ${PRECISIONS:-${turns[i % 2]}}; do runs+=("${networks[i]} $precision"); done
done

skip_all() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, ${#runs[@]} skipped"
    exit 0
}

# ---------------------------------------------------------------- the model

[ -f "$sources/Makefile" ] || skip_all "no GPU model: $sources is not there (GPU_MODEL can name it)"
if ! ${MAKE:-make} --no-print-directory BUILD="$build" GPU_MODEL="$sources" gpu-model > "$work/make" 2>&1; then
    tail -n 5 "$work/make"
    skip_all "the GPU model of $sources cannot be built here"
fi

export VPPS_LIBCUDA=$model/libgpudriver.so
export VPPS_CACHE_DIR=${VPPS_CACHE_DIR:-$(realpath -m "$build/cache")}
export GPUMODEL_SMS=${GPUMODEL_SMS:-4} GPUMODEL_STALE_L1=${GPUMODEL_STALE_L1:-2}
state=$("$vpps" doctor | sed -n 's/^ *cuda  *//p')
case $state in
"ready: gpumodel "*) echo "$state" ;;
*NVRTC*) skip_all "$state" ;;
*)
    echo "FAILED: the device is not the model: $state"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
    ;;
esac

# ---------------------------------------------------------------- training on it

# NETWORK DEVICE PRECISION: two batches of one example, of another size than a warp's or a CTA's; the losses are in
# NETWORK.PRECISION.DEVICE.
train() {
    local run=$work/$1.$3.$2 sizes=(--hidden 20) help
    help=$("$vpps" train "$1" --help) # whole: a pipe that is left early is a failure
    if [[ $help == *' --embed='* ]]; then sizes+=(--embed 12); fi
    timeout --kill-after=10 "$limit" "$vpps" train "$1" --device "$2" --no-tuning --examples 6 --batch 1 --max-batches 2 \
        --eval-every 0 --precision "$3" "${sizes[@]}" --log "$run.jsonl" --quiet > "$run.output" 2>&1 < /dev/null || return 1
    sed -n 's/.*"batch":[0-9]*,"loss":\([^,]*\),.*"event":"batch".*/\1/p' "$run.jsonl" > "$run"
}

# Are the two columns of numbers equal, but for a share of their size?
agree() {
    paste -d ' ' "$1" "$2" | awk -v tolerance="$tolerance" '
        function abs(x) { return x < 0 ? -x : x }
        NF != 2 || !(abs($1 - $2) <= tolerance * abs($1)) { bad = 1 }
        END { exit bad || NR != 2 }'
}

# NETWORK PRECISION
check() {
    local start=$SECONDS run=$work/$1.$2
    if ! train "$1" cpu "$2"; then
        {
            echo "FAILED  $1 in $2 on the CPU"
            tail -n 6 "$run.cpu.output" | sed 's/^/    /'
        } > "$run.line"
    elif ! train "$1" cuda "$2"; then
        {
            echo "FAILED  $1 in $2 on the model"
            tail -n 6 "$run.cuda.output" | sed 's/^/    /'
        } > "$run.line"
    elif ! agree "$run.cpu" "$run.cuda"; then
        {
            echo "FAILED  $1 in $2: the losses differ: CPU, model"
            paste "$run.cpu" "$run.cuda" | sed 's/^/    /'
        } > "$run.line"
    else
        printf 'ok      %-20s %-7s %4d s  %s\n' "$1" "$2" $((SECONDS - start)) "$(tr '\n' ' ' < "$run.cuda")" > "$run.line"
        touch "$run.good"
    fi
}

passed=0 failed=0
for run in "${runs[@]}"; do
    read -r network precision <<< "$run"
    check "$network" "$precision" &
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n; done
done
wait
for run in "${runs[@]}"; do
    cat "$work/${run/ /.}.line"
    if [ -e "$work/${run/ /.}.good" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
[ $others -eq 0 ] || echo "skipped: VPPS_TEST_PART leaves $others networks out"
echo "$passed passed, $failed failed, $others skipped"
[ "$failed" -eq 0 ]
