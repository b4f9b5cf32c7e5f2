#!/usr/bin/env bash
# Checks VPPS on this machine's NVIDIA GPU and writes what came out as one JSON file. Without a GPU it says so in a line,
# checks nothing, writes nothing and succeeds.
#
#     tools/gpu_check.sh [STEP...]   make gpu-check: every step, or those that are named (GPU_STEPS)
#     tools/gpu_check.sh prepare     make gpu-prepare: programs for a machine that can neither build nor download
#
# The check needs the driver, NVRTC, and some programs: the command, three test programs and two benchmarks. It takes them from
# build-gpu/ when `prepare` made them there from the very same sources, else it builds them (make, a C compiler and the
# packages of `tools/setup.sh build test`). What `prepare` makes needs nothing but glibc, no older than here: the other
# libraries are linked in, and the benchmarks' data come along. build-gpu/ is to be copied along with the sources. NVRTC is also looked for in Python's
# site-packages.
#
# Steps, in this order, each of which may fail without stopping the next:
#     doctor       what is there
#     train        a small training run by the command
#     agreement    the GPU's results against the CPU device's, few cases of each kind; a step for each kind
#     precision    products by tensor cores
#     networks     every network against its equations, on the GPU
#     handle       watchdog, pool, profile, batches in flight, two handles at once
#                  (these run beside each other, with two cores each: most of their time compiles kernels)
#     training     bench/train.py: training speed in every precision, beside PyTorch where it is installed; skipped without python3
#     bench        bench_gpu: signals, and where a batch's time goes
#     profile-1, profile-16, profile-128
#                  a batch of so many sentences under Nsight Compute; skipped where it is not installed
#     processes    a training run of two processes, a GPU each where there are two, by NCCL if it is there; skipped without mpirun
#     hidden-1024  a training run with weights that are streamed
#     hidden-2048  the same with more of them
#     memcheck, racecheck, synccheck, initcheck
#                  a small training run under compute-sanitizer; skipped where it is not installed
#     full         agreement, all cases
#
# All together may take BUDGET seconds (540): a step is ended when they are over, and those behind it are skipped. The
# results are written after every step, so that whatever ends the check leaves what it had found: OUT/check.json, OUT being
# bench/results/NAME-OF-THE-GPU unless set, has machine, commit, date, each step's command, exit status (null: skipped),
# seconds and last lines, and the benchmarks' objects. OUT/steps.tgz has what steps print, also while they run. Beside them nvidia-smi
# writes the clocks to OUT/clocks.csv, twice a second; no setting is changed. No other file is written. DATA: a folder with
# sst/train.txt and wikiner/train.txt, for the benchmarks ($VPPS_DATA).
set -euo pipefail
cd "$(dirname "$0")/.."

make=${MAKE:-make}
build=${BUILD:-build}
budget=${BUDGET:-540}
prepared="build-gpu"
programs=(vpps tests/gpu_test_gpu_agreement tests/gpu_test_gpu_handle tests/gpu_test_gpu_precision tests/models_test_networks
    tests/runtime_test_handle tests/graph_test_conditions bench/bench_gpu bench/bench_train)
order=(doctor train agreement precision networks handle training bench profile-1 profile-16 profile-128 processes
    hidden-1024 hidden-2048 memcheck racecheck synccheck initcheck full)
tests=(agreement precision networks handle)
cases=(random shapes levels long optimizers lists trees "same bits")

sum_of_sources() {
    find Makefile include src models tests bench \( -name '*.[chS]' -o -name '*.cuh' -o -name '*.def' -o -name Makefile \) \
        -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

# The commit; "+" behind it when tracked files differ from it.
commit() {
    local id
    id=$(git rev-parse HEAD 2> /dev/null) || { echo unknown; return; }
    git diff --quiet HEAD -- 2> /dev/null || id+=+
    echo "$id"
}

# ---------------------------------------------------------------- prepare

prepare() {
    local objects=$prepared-objects program
    "$make" --no-print-directory -j"$(nproc)" BUILD="$objects" \
        LIBS="-l:libjansson.a -l:libxxhash.a -l:libz.a -l:libzstd.a -lpthread -ldl -lm" \
        CHECK_LIBS="-l:libcheck.a -l:libsubunit.a -lpthread -lrt -lm" "${programs[@]/#/$objects/}"
    rm -rf "$prepared"
    for program in "${programs[@]}"; do
        mkdir -p "$(dirname "$prepared/$program")"
        strip -o "$prepared/$program" "$objects/$program"
    done
    local part
    for part in sst/train.txt wikiner/train.txt; do
        [ ! -r "${VPPS_DATA:-}/$part" ] || install -D -m 644 "$VPPS_DATA/$part" "$prepared/data/$part"
    done
    sum_of_sources > "$prepared/sources"
    commit > "$prepared/commit"
    echo "$prepared: $(du -sk "$prepared" | cut -f 1) KiB for any machine with $(getconf GNU_LIBC_VERSION) or later"
}

# ---------------------------------------------------------------- JSON

# A JSON string of the text on standard input; what is neither text nor ASCII becomes "?".
json_string() {
    LC_ALL=C tr -c '\n\t -~' '?' | LC_ALL=C sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' |
        awk 'BEGIN { printf "\"" } NR > 1 { printf "\\n" } { printf "%s", $0 } END { printf "\"" }'
}

# ---------------------------------------------------------------- steps

steps=""
failed=0

# NAME COMMAND STATUS SECONDS LAST-LINES, as JSON but for the first two. The file is whole at any time.
add_step() {
    steps+="${steps:+,}"$'\n'"    {\"step\": \"$1\", \"command\": $(json_string <<< "$2"), \"exit_status\": $3, "
    steps+="\"seconds\": $4, \"last_lines\": $5}"
    local objects
    objects=$(cat "$steps_out"/training.json "$steps_out"/bench.out 2> /dev/null | grep '^{.*}$' | sed 's/^/    /; $!s/$/,/' || true)
    cat > "$out/check.json.part" << JSON
{
  "date": "$date",
  "commit": "$id",
  "gpu": $(printf '%s' "$gpu" | json_string),
  "nvidia_smi": $nvidia,
  "machine": $machine,
  "budget_s": $budget,
  "steps": [$steps
  ],
  "bench": [
$objects
  ]
}
JSON
    mv "$out/check.json.part" "$out/check.json"
    pack
}

pack() {
    tar -C "$work" -czf "$out/steps.tgz.part" steps 2> /dev/null || true # while a step writes
    mv "$out/steps.tgz.part" "$out/steps.tgz"
}

# Seconds that a step may take, of those that it asks for; nothing: the budget is over.
time_left() {
    local left=$((budget - SECONDS))
    [ "$left" -lt 1 ] || echo $(($1 < left ? $1 : left))
}

# NAME LIMIT COMMAND...: runs it, and notes its exit status and milliseconds.
measure() {
    local name=$1 limit=$2 status=0 start
    shift 2
    start=$(date +%s%N)
    timeout --kill-after=5 "$limit" "$@" > "$steps_out/$name.out" 2> "$steps_out/$name.err" < /dev/null || status=$?
    if [ "$status" -eq 0 ] && grep -q '^100%: Checks: 0,' "$steps_out/$name.out"; then
        echo "no such case: nothing was checked" >> "$steps_out/$name.err"
        status=1
    fi
    echo "$status $((($(date +%s%N) - start) / 1000000))" > "$work/$name.ended"
}

# NAME SECONDS-ALLOWED COMMAND...
step() {
    local name=$1 limit
    limit=$(time_left "$2")
    shift 2
    if [ -z "$limit" ]; then
        skip "$name" "$budget s are over"
        return
    fi
    measure "$name" "$limit" "$@"
    record "$name" "$@"
}

# NAME COMMAND...: what came out of it.
record() {
    local name=$1 status ms
    shift
    read -r status ms < "$work/$name.ended"
    tail -q -n 20 "$steps_out/$name.out" "$steps_out/$name.err" > "$work/tail"
    add_step "$name" "$*" "$status" "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" "$(json_string < "$work/tail")"
    if [ "$status" -eq 0 ]; then
        printf 'ok      %-20s %4d s\n' "$name" $((ms / 1000))
    else
        failed=$((failed + 1))
        printf 'FAILED  %-20s %4d s  exit status %d\n' "$name" $((ms / 1000)) "$status"
        sed 's/^/    /' "$work/tail"
    fi
}

skip() {
    add_step "$1" "" null 0 "$(json_string <<< "skipped: $2")"
    printf 'skipped %-20s %s\n' "$1" "$2"
}

# A program of the toolkit; fails without.
find_tool() {
    local path
    for path in "$1" "${CUDA_HOME:-/usr/local/cuda}"/{bin,"$1"}/"$1"; do
        command -v "$path" && return
    done
    return 1
}

# TOOL: a training run, which compiles one kernel.
sanitize() {
    local sanitizer
    if ! sanitizer=$(find_tool compute-sanitizer); then
        skip "$1" "compute-sanitizer is not installed"
        return
    fi
    step "$1" 90 "$sanitizer" --tool "$1" --error-exitcode 99 "$from/vpps" train tree-lstm --device cuda --no-tuning \
        --hidden 64 --embed 64 --generate listops --examples 12 --batch 4 --epochs 1 --eval-every 0 --precision fp32 --quiet
}

# BATCH: the launch behind those that load, tune and warm up.
profile() {
    local ncu precision=fp32 data=(--generate listops)
    if ! ncu=$(find_tool ncu); then
        skip "profile-$1" "ncu is not installed"
        return
    fi
    [ "$1" -lt 128 ] || precision=bf16x3
    [ ! -r "${VPPS_DATA:-}/sst/train.txt" ] || data=(--data "$VPPS_DATA/sst")
    step "profile-$1" 60 "$ncu" --clock-control none --set full --import-source no --kernel-name vpps_kernel --launch-skip 4 \
        --launch-count 1 --page details "$from/vpps" train tree-lstm --device cuda --no-tuning --hidden 256 --embed 256 "${data[@]}" \
        --batch "$1" --max-batches 6 --eval-every 0 --optimizer sgd --clip 0 --precision "$precision" --quiet
}

# The tests that were asked for, beside each other: as many at a time as there are pairs of cores.
run_tests() {
    local lanes=$(($(nproc) / 2)) lane=0 name program case limit jobs=() names=()
    for name in "$@"; do
        case $name in
        agreement) for case in "${cases[@]}"; do jobs+=("agreement-${case// /-}|gpu_test_gpu_agreement|$case"); done ;;
        networks) jobs+=("networks|models_test_networks|") ;;
        handle) jobs+=("handle|gpu_test_gpu_handle|" "calls|runtime_test_handle|gpu" "loops|graph_test_conditions|gpu") ;;
        *) jobs+=("$name|gpu_test_gpu_$name|") ;;
        esac
    done
    for job in "${jobs[@]}"; do
        IFS='|' read -r name program case <<< "$job"
        limit=$(time_left 240)
        if [ -z "$limit" ]; then
            skip "$name" "$budget s are over"
            continue
        fi
        names+=("$job")
        if [ "$lanes" -lt 2 ]; then
            measure "$name" "$limit" env VPPS_TEST_SCALE=small CK_RUN_CASE="$case" "$from/tests/$program"
            continue
        fi
        [ "$(jobs -rp | grep -vc "^$clocks$")" -lt "$lanes" ] || wait -n || true
        measure "$name" "$limit" env VPPS_TEST_SCALE=small CK_RUN_CASE="$case" \
            taskset -c $((2 * lane)),$((2 * lane + 1)) "$from/tests/$program" &
        lane=$(((lane + 1) % lanes))
    done
    for job in "${names[@]}"; do
        IFS='|' read -r name program case <<< "$job"
        until [ -e "$work/$name.ended" ]; do
            wait -n || true
            pack
        done
        record "$name" "CK_RUN_CASE=$case" "$from/tests/$program"
    done
}

# HIDDEN: few examples, no profile.
train_large() {
    step "hidden-$1" 150 "$from/vpps" train tree-lstm --device cuda --no-tuning --hidden "$1" --embed "$1" \
        --generate listops --examples 64 --batch 16 --epochs 1 --eval-every 0 --quiet --json
}

# What it prints tells which way the gradients went.
train_processes() {
    if ! command -v mpirun > /dev/null; then
        skip processes "mpirun is not installed"
        return
    fi
    step processes 90 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 "$from/vpps" \
        train tree-lstm --device cuda --no-tuning --generate listops --examples 1000 --epochs 1
}

# Behind it lies the profile, which bench_gpu goes by.
measure_training() {
    if ! command -v python3 > /dev/null; then
        skip training "python3 is not installed"
        return
    fi
    step training 300 env BUILD="$from" VPPS="$from/vpps" python3 bench/train.py --device cuda --networks tree-lstm --rounds 3 --seconds 0.2 \
        --with="--precision bf16x3" --with="--precision bf16" --details --json "$steps_out/training.json"
}

run_step() {
    case $1 in
    doctor) step doctor 30 "$from/vpps" doctor ;;
    train) step train 60 "$from/vpps" train tree-lstm --device cuda --generate listops --examples 1000 --epochs 1 \
        --quiet --json ;;
    training) measure_training ;;
    bench) step bench 90 "$from/bench/bench_gpu" ;;
    profile-*) profile "${1#profile-}" ;;
    processes) train_processes ;;
    hidden-*) train_large "${1#hidden-}" ;;
    memcheck | racecheck | synccheck | initcheck) sanitize "$1" ;;
    full) step full 300 "$from/tests/gpu_test_gpu_agreement" ;;
    esac
}

# ---------------------------------------------------------------- libraries

# Is NVRTC where the loader or the engine looks?
have_nvrtc() {
    local folder
    if grep -q '^[[:space:]]*libnvrtc\.so' <<< "$(ldconfig -p 2> /dev/null)"; then return; fi # whole: a pipe left early is a failure
    for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
        if [ -n "$folder" ] && compgen -G "$folder/lib64/libnvrtc.so*" > /dev/null; then return; fi
    done
    return 1
}

# The wheels of NVIDIA put it in nvidia/*/lib below a folder that Python looks in.
find_nvrtc() {
    local folder path
    if have_nvrtc; then return; fi
    while read -r folder; do
        for path in "$folder"/nvidia/*/lib/libnvrtc.so*; do
            [ -e "$path" ] || continue
            export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${path%/*}
            echo "libnvrtc: $path"
            return
        done
    done < <(python3 -c 'import sys; print("\n".join(p for p in sys.path if p))' 2> /dev/null)
}

# ---------------------------------------------------------------- check

[ "${1:-}" != prepare ] || { prepare; exit; }
wanted=("$@")
[ $# -gt 0 ] || wanted=("${order[@]}")
for name in "${wanted[@]}"; do
    if [[ " ${order[*]} " != *" $name "* ]]; then
        echo "gpu_check: unknown step '$name' (prepare, or any of: ${order[*]})" >&2
        exit 2
    fi
done

work=$(mktemp -d)
steps_out=$work/steps
mkdir "$steps_out"
clocks=
trap 'exit 143' TERM INT
trap 'trap "" TERM INT; [ -z "$clocks" ] || kill "$clocks" 2> /dev/null || true; [ -z "${out:-}" ] || pack; rm -rf "$work"' EXIT
from=$build
id=$(commit)
if [ -f "$prepared/sources" ] && [ "$(cat "$prepared/sources")" = "$(sum_of_sources)" ]; then
    from=$prepared
    [ -n "${VPPS_DATA:-}" ] || [ ! -d "$prepared/data" ] || export VPPS_DATA=$PWD/$prepared/data
    id=$(cat "$prepared/commit")
elif ! "$make" --no-print-directory -j"$(nproc)" BUILD="$build" "$build/vpps" > "$work/build" 2>&1; then
    tail -n 20 "$work/build" >&2
    echo "gpu_check: the command cannot be built here, and $prepared/ holds none of these sources" \
        "(tools/gpu_check.sh prepare, elsewhere)" >&2
    exit 1
fi

find_nvrtc
machine=$("$from/vpps" doctor --json)
state=$("$from/vpps" doctor | sed -n 's/^ *cuda  *//p')
gpu=$(sed -n 's/.*"gpu": *"\([^"]*\)".*/\1/p' <<< "$machine")
case $state in
"ready: "*) echo "GPU: ${state#ready: }" ;;
*)
    if [ -n "$gpu" ]; then
        echo "gpu_check: $state" >&2
        exit 1
    fi
    echo "No GPU here ($state); nothing was checked."
    exit 0
    ;;
esac

if [ "$from" = "$build" ]; then
    "$make" --no-print-directory -j"$(nproc)" BUILD="$build" "${programs[@]/#/$build/}"
fi

slug=$(tr '[:upper:]' '[:lower:]' <<< "$gpu" | tr -cs 'a-z0-9\n' '-' | sed 's/^-*//; s/-*$//')
out=${OUT:-bench/results/$slug}
mkdir -p "$out"
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
nvidia=$({ nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,persistence_mode \
    --format=csv,noheader 2> /dev/null || true; } | json_string)
export VPPS_CACHE_DIR=$work/cache # kernels are compiled anew
export VPPS_TEST_DEVICE=cuda CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-120}

# While it is there the driver stays loaded, too, between the steps.
if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu --format=csv -lms 500 \
        > "$out/clocks.csv" 2>&1 < /dev/null &
    clocks=$!
fi

for name in "${order[@]}"; do
    if [[ " ${wanted[*]} " != *" $name "* ]]; then continue; fi
    if [[ " ${tests[*]} " != *" $name "* ]]; then
        run_step "$name"
    elif [ -z "${tested:-}" ]; then
        tested=1
        chosen=()
        for test in "${tests[@]}"; do [[ " ${wanted[*]} " != *" $test "* ]] || chosen+=("$test"); done
        run_tests "${chosen[@]}"
    fi
done
echo "$out/check.json: $failed failed"
[ "$failed" -eq 0 ]
