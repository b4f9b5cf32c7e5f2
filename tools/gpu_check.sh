#!/usr/bin/env bash
# Checks VPPS on this machine's NVIDIA GPU and writes what came out as one JSON file. Without a GPU it says so in a line,
# checks nothing, writes nothing and succeeds.
#
#     tools/gpu_check.sh [STEP...]             make gpu-check: every step, or those that are named (GPU_STEPS)
#     tools/gpu_check.sh prepare               make gpu-prepare: build-gpu/, for a machine that can neither build nor download
#     build-gpu/tools/gpu_check.sh [STEP...]   there: the same check, by what build-gpu/ holds
#
# The check needs bash, coreutils, the driver, NVRTC, and some programs: the command, six test programs and two benchmarks. It takes
# them from build-gpu/ when `prepare` made them there from the very same sources, else it builds them (make, a C compiler and the
# packages of `tools/setup.sh build test`). What `prepare` makes needs nothing but glibc, no older than here: the other
# libraries are linked in, and this script, the benchmarks and their data come along, so that build-gpu/ is all that must be carried.
# NVRTC is also looked for in Python's site-packages.
#
# Steps, in the order of `each_step` below, each of which may fail without stopping the next; NAME also means all of NAME-...:
#     doctor       what is there
#     train        a small training run by the command
#     agreement    the GPU's results against the CPU device's, few cases of each kind; a step for each kind
#     precision    products by tensor cores
#     cublas       gradients of matrices by cuBLAS
#     networks     every network against its equations, on the GPU
#     handle       watchdog, pool, profile, batches in flight
#     calls, loops what a handle promises on every device, two at once too, and loops of a graph
#                  (these run beside each other, with two cores each: most of their time compiles kernels)
#     training     bench/train.py: training speed in every precision, beside PyTorch where it is installed
#     bench        bench_gpu: signals, and where a batch's time goes
#     profile-1, profile-16, profile-128
#                  a batch of so many sentences under Nsight Compute
#     processes    a training run of two processes, a GPU each where there are two, by NCCL if it is there
#     hidden-1024, hidden-2048: training runs with weights that are streamed
#     memcheck, racecheck, synccheck, initcheck
#                  a small training run under compute-sanitizer
#     full         agreement, all cases
#     peers        bench/train.py: other networks beside every way of PyTorch, torch.compile and CUDA graphs included
#     large-512, large-1024, large-2048: likewise tree-lstm, lstm-lm and transformer-tagger of this hidden size
# A step whose tool is not installed (python3, ncu, mpirun, compute-sanitizer) is skipped with that reason, which is no failure.
#
# All together may take BUDGET seconds (540): a step is ended when they are over, and those after it are skipped. STEP_LIMIT: seconds
# that each step may take, instead of those that `each_step` gives it. SIZE=small: `train` takes a tiny model, for a GPU that is simulated. The
# results are written after every step, so that whatever ends the check leaves what it had found: OUT/check.json, OUT being
# bench/results/NAME-OF-THE-GPU unless set, has machine, commit, date, each step's command, exit status (null: skipped),
# seconds and last lines, and the benchmarks' objects. OUT/steps.txt has what steps print, also while they run. Beside them nvidia-smi
# writes the clocks to OUT/clocks.csv, twice a second; no setting is changed. No other file is written. DATA: a folder with
# the data sets of the benchmarks ($VPPS_DATA).
#
# Most of the tests' time is compiling. `prepare` takes along the kernels of the cache KERNELS (a folder as $VPPS_CACHE_DIR), so that those
# which the same NVRTC made of the same sources are not compiled there.
set -euo pipefail
shopt -s extglob globstar nullglob
export LC_ALL=C # the order of files, and what a letter is
cd "$(dirname "$0")/.."

make=${MAKE:-make}
build=${BUILD:-build}
budget=${BUDGET:-540}
prepared="build-gpu"
programs=(vpps tests/gpu_test_gpu_agreement tests/gpu_test_gpu_handle tests/gpu_test_gpu_precision tests/gpu_test_gpu_cublas
    tests/models_test_networks tests/runtime_test_handle tests/runtime_test_pointers tests/graph_test_conditions bench/bench_gpu bench/bench_train)
scripts=(tools/gpu_check.sh bench/train.py bench/peers.py bench/peers_torch.py bench/twins/{parts,trees,taggers,text,graphs,lattices,buckets}.py
    bench/recipes/{tree_graphs,lattice_text}.py)
# Of agreement, and in how many processes: most of the time goes into compiling, which takes one core.
cases=(random=6 shapes=4 levels=2 long=1 optimizers=5 lists=1 trees=2 "same bits=3")

# ---------------------------------------------------------------- the steps

# NAME PARTS PROGRAM VARIABLE=VALUE...: calls "$each" for each of so many processes that share out a program's tests.
each_part() {
    local name=$1 parts=$2 program=$3 part number
    for ((part = 1; part <= parts; part++)); do
        number=-$part
        [ "$parts" -gt 1 ] || number=
        "$each" "$name$number" 240 beside - env VPPS_TEST_SCALE=small VPPS_TEST_PART="$part/$parts" "${@:4}" "$program"
    done
}

# Calls "$1" for each step: NAME SECONDS alone|beside TOOL COMMAND... SECONDS: it may take at most. beside: it may run beside other such
# steps. TOOL: what must be installed for it; -: nothing.
each_step() {
    local each=$1 case n data=(--generate listops) train=(train tree-lstm --device cuda) size=(--examples 1000)
    [ "${SIZE:-}" != small ] || size=(--examples 8 --hidden 16 --embed 16 --no-tuning --eval-every 0)
    [ ! -r "${VPPS_DATA:-}/sst/train.txt" ] || data=(--data "$VPPS_DATA/sst")

    "$each" doctor 30 alone - "$from/vpps" doctor
    "$each" train 60 alone - "$from/vpps" "${train[@]}" --generate listops "${size[@]}" --epochs 1 --quiet --json
    for case in "${cases[@]}"; do
        n=${case#*=} case=${case%=*}
        each_part "agreement-${case// /-}" "$n" "$from/tests/gpu_test_gpu_agreement" CK_RUN_CASE="$case"
    done
    "$each" precision 240 beside - env VPPS_TEST_SCALE=small "$from/tests/gpu_test_gpu_precision"
    each_part cublas 3 "$from/tests/gpu_test_gpu_cublas"
    "$each" networks 240 beside - env VPPS_TEST_SCALE=small "$from/tests/models_test_networks"
    "$each" handle 240 beside - env VPPS_TEST_SCALE=small "$from/tests/gpu_test_gpu_handle"
    "$each" calls 240 beside - env VPPS_TEST_SCALE=small CK_RUN_CASE=gpu "$from/tests/runtime_test_handle"
    "$each" arrays 240 beside - env CK_RUN_CASE=gpu "$from/tests/runtime_test_pointers"
    "$each" loops 240 beside - env VPPS_TEST_SCALE=small CK_RUN_CASE=gpu "$from/tests/graph_test_conditions"
    # It leaves a profile, which bench_gpu goes by.
    "$each" training 300 alone python3 env BUILD="$from" VPPS="$from/vpps" python3 bench/train.py --device cuda --networks tree-lstm \
        --rounds 3 --seconds 0.2 --with="--precision bf16x3" --with="--precision bf16" --details --json "$steps_out/training.json"
    "$each" bench 90 alone - "$from/bench/bench_gpu"
    for n in 1 16 128; do # the launch after those that load, tune and warm up
        "$each" "profile-$n" 60 alone ncu ncu --clock-control none --set full --import-source no --kernel-name vpps_kernel --launch-skip 4 \
            --launch-count 1 --page details "$from/vpps" "${train[@]}" --no-tuning --hidden 256 --embed 256 "${data[@]}" --batch "$n" \
            --max-batches 6 --eval-every 0 --optimizer sgd --clip 0 --precision "$([ "$n" -lt 128 ] && echo fp32 || echo bf16x3)" --quiet
    done
    # What it prints tells which way the gradients went.
    "$each" processes 90 alone mpirun env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 "$from/vpps" \
        "${train[@]}" --no-tuning --generate listops --examples 1000 --epochs 1
    for n in 1024 2048; do
        "$each" "hidden-$n" 150 alone - "$from/vpps" "${train[@]}" --no-tuning --hidden "$n" --embed "$n" --generate listops --examples 64 \
            --batch 16 --epochs 1 --eval-every 0 --quiet --json
    done
    for n in memcheck racecheck synccheck initcheck; do # one kernel is compiled
        "$each" "$n" 90 alone compute-sanitizer compute-sanitizer --tool "$n" --error-exitcode 99 "$from/vpps" "${train[@]}" --no-tuning \
            --hidden 64 --embed 64 --generate listops --examples 12 --batch 4 --epochs 1 --eval-every 0 --precision fp32 --quiet
    done
    "$each" full 300 alone - "$from/tests/gpu_test_gpu_agreement"
    "$each" peers 480 alone python3 env BUILD="$from" VPPS="$from/vpps" python3 bench/train.py --device cuda --rounds 1 --limit 420 \
        --networks transformer-tagger,gat,lstm-lm,lstm-nmt,bilstm-tagger --details --json "$steps_out/peers.json"
    for n in 512 1024 2048; do
        "$each" "large-$n" 300 alone python3 env BUILD="$from" VPPS="$from/vpps" python3 bench/train.py --device cuda --rounds 1 --limit 240 \
            --networks tree-lstm,lstm-lm,transformer-tagger --hidden "$n" --details --json "$steps_out/large-$n.json"
    done
}

# ---------------------------------------------------------------- prepare

sum_of_sources() {
    local sum
    read -r sum _ < <(sha256sum Makefile {include,src,models,tests,bench}/**/@(*.[chS]|*.cuh|*.def|Makefile) | sha256sum)
    echo "$sum"
}

# The commit; "+" after it when tracked files differ from it.
commit() {
    local id
    id=$(git rev-parse HEAD 2> /dev/null) || { echo unknown; return; }
    git diff --quiet HEAD -- 2> /dev/null || id+=+
    echo "$id"
}

prepare() {
    local objects=$prepared-objects name
    "$make" --no-print-directory -j"$(nproc)" BUILD="$objects" OBJ="$build/obj" \
        LIBS="-l:libjansson.a -l:libz.a -l:libzstd.a -lpthread -ldl -lm" \
        CHECK_LIBS="-l:libcheck.a -l:libsubunit.a -lpthread -lrt -lm" "${programs[@]/#/$objects/}"
    rm -rf "$prepared"
    mkdir -p "$prepared"/{tests,bench/twins,bench/recipes,tools}
    for name in "${programs[@]}"; do strip -o "$prepared/$name" "$objects/$name"; done
    for name in "${scripts[@]}"; do cp "$name" "$prepared/$name"; done
    for name in sst/train.txt wikiner/train.txt ptb_lm/ptb.train.txt multi30k/train.{de,en}; do
        [ ! -r "${VPPS_DATA:-}/$name" ] || install -D -m 644 "$VPPS_DATA/$name" "$prepared/data/$name"
    done
    [ -z "${KERNELS:-}" ] || cp -r "$KERNELS" "$prepared/kernels"
    sum_of_sources > "$prepared/sources"
    commit > "$prepared/commit"
    echo "$prepared: $(du -sk "$prepared" | cut -f 1) KiB for any machine with $(getconf GNU_LIBC_VERSION) or later"
}

# ---------------------------------------------------------------- what came out

# A JSON string of the text on standard input; what is neither text nor ASCII becomes "?".
json_string() {
    local text
    text=$(tr -c '\n\t -~' '?')
    text=${text//$'\\'/$'\\\\'}
    text=${text//'"'/'\"'}
    text=${text//$'\t'/'\t'}
    printf '"%s"' "${text//$'\n'/'\n'}"
}

# The benchmarks' objects.
objects() {
    local line separator=
    cat "$steps_out"/{training.json,bench.out,peers.json,large-*.json} 2> /dev/null | while read -r line; do
        if [[ $line == '{'*'}' ]]; then
            printf '%s    %s' "$separator" "$line"
            separator=$',\n'
        fi
    done || true
}

steps=""
failed=0

# NAME COMMAND STATUS SECONDS LAST-LINES, as JSON but for the first two. The file is whole at any time.
add_step() {
    steps+="${steps:+,}"$'\n'"    {\"step\": \"$1\", \"command\": $(json_string <<< "$2"), \"exit_status\": $3, "
    steps+="\"seconds\": $4, \"last_lines\": $5}"
    cat > "$out/check.json.part" << JSON
{
  "date": "$date",
  "commit": "$id",
  "gpu": $(json_string <<< "$gpu"),
  "nvidia_smi": $nvidia,
  "machine": $machine,
  "budget_s": $budget,
  "steps": [$steps
  ],
  "bench": [
$(objects)
  ]
}
JSON
    mv "$out/check.json.part" "$out/check.json"
    pack
}

# The last MiB of what each step has printed.
pack() {
    (cd "$work" && tail -v -c 1048576 steps/* > "$out/steps.txt.part" 2> /dev/null) || true
    mv "$out/steps.txt.part" "$out/steps.txt"
}

# NAME: what came out of it.
record() {
    local name=$1 status ms line
    { read -r status ms && read -r line; } < "$work/$name.ended"
    tail -q -n 20 "$steps_out/$name.out" "$steps_out/$name.err" > "$work/tail"
    add_step "$name" "$line" "$status" "$((ms / 1000)).$(printf %03d $((ms % 1000)))" "$(json_string < "$work/tail")"
    if [ "$status" -eq 0 ]; then
        printf 'ok      %-20s %4d s\n' "$name" $((ms / 1000))
    else
        failed=$((failed + 1))
        printf 'FAILED  %-20s %4d s  exit status %d\n' "$name" $((ms / 1000)) "$status"
        while IFS= read -r line; do printf '    %s\n' "$line"; done < "$work/tail"
    fi
}

skip() {
    add_step "$1" "" null 0 "$(json_string <<< "skipped: $2")"
    printf 'skipped %-20s %s\n' "$1" "$2"
}

# ---------------------------------------------------------------- running

# NAME LIMIT COMMAND...: runs it; the file NAME.ended then has its exit status and milliseconds, and the command. Runs in a process of its own.
measure() {
    local name=$1 limit=$2 status=0 start child
    shift 2
    start=$(date +%s%N)
    timeout --kill-after=5 "$limit" "$@" > "$steps_out/$name.out" 2> "$steps_out/$name.err" < /dev/null &
    child=$!
    trap 'kill "$child" 2> /dev/null' TERM
    wait "$child" || status=$?
    if [ "$status" -eq 0 ] && [[ $'\n'$(tail -n 5 "$steps_out/$name.out") == *$'\n100%: Checks: 0,'* ]]; then
        echo "no such case: nothing was checked" >> "$steps_out/$name.err"
        status=1
    fi
    printf '%s\n' "$status $((($(date +%s%N) - start) / 1000000))" "$*" > "$work/$name.ends"
    mv "$work/$name.ends" "$work/$name.ended" # whole at once: who waits for it reads it
}

lanes=$(($(nproc) / 2 > 1 ? $(nproc) / 2 : 1)) # steps beside each other: as many as there are pairs of cores
in_lane=()                                     # process
running=()                                     # names

busy() { [[ " $(jobs -rp | tr '\n' ' ')" == *" $1 "* ]]; }

# Waits for what runs, and records it.
finish() {
    local name
    for name in "${running[@]}"; do
        until [ -e "$work/$name.ended" ]; do
            wait -n || true
            pack
        done
        record "$name"
    done
    running=()
}

# A step of the table: runs it when it is wanted.
run_step() {
    local name=$1 limit=${STEP_LIMIT:-$2} how=$3 tool=$4 lane=0 cores=()
    shift 4
    if ! is_wanted "$name"; then return; fi
    [ "$how" = beside ] || finish
    while busy "${in_lane[lane]:-none}"; do
        lane=$(((lane + 1) % lanes))
        [ "$lane" -ne 0 ] || wait -n || true
    done
    if [ "$tool" != - ] && ! command -v "$tool" > /dev/null; then
        skip "$name" "$tool is not installed"
        return
    fi
    limit=$((limit < budget - SECONDS ? limit : budget - SECONDS))
    if [ "$limit" -lt 1 ]; then
        finish
        skip "$name" "$budget s are over"
        return
    fi
    if [ "$how" = beside ] && [ "$lanes" -gt 1 ] && command -v taskset > /dev/null; then cores=(taskset -c "$((2 * lane)),$((2 * lane + 1))"); fi
    measure "$name" "$limit" "${cores[@]}" "$@" &
    in_lane[lane]=$!
    running+=("$name")
    [ "$how" = beside ] || finish
}

# A name means itself and, as NAME, what begins with NAME-.
is_wanted() {
    local name
    [ "${#wanted[@]}" -gt 0 ] || return 0
    for name in "${wanted[@]}"; do
        if [[ $1 == "$name" || $1 == "$name"-* ]]; then return; fi
    done
    return 1
}

# ---------------------------------------------------------------- libraries

# Is NVRTC where the loader or the engine looks?
have_nvrtc() {
    local folder
    if [[ $(ldconfig -p 2> /dev/null) == *libnvrtc.so* ]]; then return; fi
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
            export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${path%/*}
            echo "libnvrtc: $path"
            return
        done
    done < <(python3 -c 'import sys; print("\n".join(p for p in sys.path if p))' 2> /dev/null)
}

# ---------------------------------------------------------------- check

[ "${1:-}" != prepare ] || { prepare; exit; }

steps_out=
from=$build
wanted=()
names=()
note_name() { names+=("$1"); }
each_step note_name
for name in "$@"; do
    wanted=("$name")
    for step in "${names[@]}"; do
        if is_wanted "$step"; then continue 2; fi
    done
    echo "gpu_check: unknown step '$name' (prepare, or any of: ${names[*]})" >&2
    exit 2
done
wanted=("$@")

work=$(mktemp -d)
steps_out=$work/steps
mkdir "$steps_out"
# timeout signals twice, the process and its group. The second signal can end the first wait.
trap 'trap "" TERM INT; exit 143' TERM INT
trap 'trap "" TERM INT; kill $(jobs -p) 2> /dev/null || true; wait || wait || true; [ -z "${out:-}" ] || pack; rm -rf "$work"' EXIT
id=$(commit)
if [ -f sources ]; then # this is a copy of build-gpu/
    from=.
elif [ -f "$prepared/sources" ] && [ "$(< "$prepared/sources")" = "$(sum_of_sources)" ]; then
    from=$prepared
elif ! "$make" --no-print-directory -j"$(nproc)" BUILD="$build" "$build/vpps" > "$work/build" 2>&1; then
    tail -n 20 "$work/build" >&2
    echo "gpu_check: the command cannot be built here, and $prepared/ holds none of these sources" \
        "(tools/gpu_check.sh prepare, elsewhere)" >&2
    exit 1
fi
if [ "$from" != "$build" ]; then
    id=$(< "$from/commit")
    [ -n "${VPPS_DATA:-}" ] || [ ! -d "$from/data" ] || export VPPS_DATA=$PWD/$from/data
fi

toolkit=${CUDA_HOME:-/usr/local/cuda}
PATH+=:$toolkit/bin:$toolkit/compute-sanitizer
find_nvrtc
machine=$("$from/vpps" doctor --json)
gpu=
[[ ! $machine =~ '"gpu":'\ *'"'([^\"]*)'"' ]] || gpu=${BASH_REMATCH[1]}
state=
while read -r name line; do [ "$name" != cuda ] || state=$line; done <<< "$("$from/vpps" doctor)"
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

slug=${gpu,,}
slug=${slug//+([^a-z0-9])/-}
slug=${slug#-}
out=${OUT:-bench/results/${slug%-}}
mkdir -p "$out"
out=$(cd "$out" && pwd)
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
nvidia=$({ nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,persistence_mode \
    --format=csv,noheader 2> /dev/null || true; } | json_string)
export VPPS_CACHE_DIR=$work/cache # kernels are compiled anew, but for those that came along
[ ! -d "$from/kernels" ] || cp -r "$from/kernels" "$VPPS_CACHE_DIR"
export VPPS_TEST_DEVICE=cuda CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-120}

# While it is there the driver stays loaded, too, between the steps.
if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu --format=csv -lms 500 \
        > "$out/clocks.csv" 2>&1 < /dev/null &
fi

each_step run_step
finish
echo "$out/check.json: $failed failed"
[ "$failed" -eq 0 ]
