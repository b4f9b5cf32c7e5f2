#!/usr/bin/env bash
# Checks VPPS on this machine's NVIDIA GPU and writes what came out as one JSON file. Without a GPU it says so in a line,
# checks nothing, writes nothing and succeeds.
#
#     tools/gpu_check.sh [STEP...]   make gpu-check: every step, or those that are named (GPU_STEPS)
#     tools/gpu_check.sh prepare     make gpu-prepare: programs for a machine that can neither build nor download
#
# The check needs the driver, NVRTC, and some programs: the command, three test programs and bench_gpu. It takes them from
# build-gpu/ when `prepare` made them there from the very same sources, else it builds them (make, a C compiler and the
# packages of `tools/setup.sh build test`). What `prepare` makes needs nothing but glibc, no older than here: the other
# libraries are linked in. build-gpu/ is to be copied along with the sources. NVRTC is also looked for in Python's
# site-packages.
#
# Steps, in this order, each of which may fail without stopping the next:
#     doctor       what is there
#     agreement    the GPU's results against the CPU device's, few cases of each kind
#     train        a small training run by the command
#     bench        bench_gpu; its lines are JSON objects
#     networks     every network against its equations, on the GPU
#     handle       watchdog, pool, profile, two handles at once
#     processes    a training run of two processes, a GPU each where there are two, by NCCL if it is there; skipped without mpirun
#     hidden-1024  a training run with weights that are streamed
#     hidden-2048  the same with more of them
#     memcheck, racecheck, synccheck, initcheck
#                  one case of agreement under compute-sanitizer; skipped where it is not installed
#     full         agreement, all cases
#
# All together may take BUDGET seconds (540): a step is ended when they are over, and those behind it are skipped. The
# results are written after every step, so that whatever ends the check leaves what it had found: OUT/check.json, OUT being
# bench/results/NAME-OF-THE-GPU unless set, has machine, commit, date, each step's command, exit status (null: skipped),
# seconds and last lines, and the benchmark's objects. OUT/STEP.out and OUT/STEP.err are what a step prints while it runs.
# Beside them nvidia-smi writes the clocks to OUT/clocks.csv, twice a second; no setting is changed.
set -euo pipefail
cd "$(dirname "$0")/.."

make=${MAKE:-make}
build=${BUILD:-build}
budget=${BUDGET:-540}
prepared="build-gpu"
programs=(vpps tests/gpu_test_gpu_agreement tests/gpu_test_gpu_handle tests/models_test_networks bench/bench_gpu)
order=(doctor agreement train bench networks handle processes hidden-1024 hidden-2048 memcheck racecheck synccheck initcheck full)

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
    local objects=""
    [ ! -e "$out/bench.out" ] || objects=$(grep '^{.*}$' "$out/bench.out" | sed 's/^/    /; $!s/$/,/' || true)
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
}

# NAME SECONDS-ALLOWED COMMAND...
step() {
    local name=$1 limit=$2 status=0 start ms left=$((budget - SECONDS))
    shift 2
    if [ "$left" -lt 1 ]; then
        skip "$name" "$budget s are over"
        return
    fi
    [ "$limit" -lt "$left" ] || limit=$left
    start=$(date +%s%N)
    timeout --kill-after=5 "$limit" "$@" > "$out/$name.out" 2> "$out/$name.err" < /dev/null || status=$?
    ms=$((($(date +%s%N) - start) / 1000000))
    if [ "$status" -eq 0 ] && grep -q '^100%: Checks: 0,' "$out/$name.out"; then
        echo "no such case: nothing was checked" >> "$out/$name.err"
        status=1
    fi
    tail -q -n 20 "$out/$name.out" "$out/$name.err" > "$work/tail"
    add_step "$name" "$*" "$status" "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" "$(json_string < "$work/tail")"
    if [ "$status" -eq 0 ]; then
        printf 'ok      %-12s %4d s\n' "$name" $((ms / 1000))
    else
        failed=$((failed + 1))
        printf 'FAILED  %-12s %4d s  exit status %d\n' "$name" $((ms / 1000)) "$status"
        sed 's/^/    /' "$work/tail"
    fi
}

skip() {
    add_step "$1" "" null 0 "$(json_string <<< "skipped: $2")"
    printf 'skipped %-12s %s\n' "$1" "$2"
}

# compute-sanitizer's program; fails without.
find_sanitizer() {
    local path
    for path in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer}/compute-sanitizer; do
        command -v "$path" && return
    done
    return 1
}

# TOOL CASE: one case, in one process: children would each start the GPU again.
sanitize() {
    local sanitizer
    if ! sanitizer=$(find_sanitizer); then
        skip "$1" "compute-sanitizer is not installed"
        return
    fi
    step "$1" 90 env VPPS_TEST_SCALE=small CK_FORK=no CK_TIMEOUT_MULTIPLIER=20 CK_RUN_CASE="$2" \
        "$sanitizer" --tool "$1" --error-exitcode 99 "$from/tests/gpu_test_gpu_agreement"
}

# HIDDEN: few examples, no profile.
train_large() {
    step "hidden-$1" 90 "$from/vpps" train tree-lstm --device cuda --no-tuning --hidden "$1" --embed "$1" \
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

run_step() {
    case $1 in
    doctor) step doctor 30 "$from/vpps" doctor ;;
    agreement) step agreement 180 env VPPS_TEST_SCALE=small "$from/tests/gpu_test_gpu_agreement" ;;
    train) step train 60 "$from/vpps" train tree-lstm --device cuda --generate listops --examples 1000 --epochs 1 \
        --quiet --json ;;
    bench) step bench 180 "$from/bench/bench_gpu" ;;
    networks) step networks 120 "$from/tests/models_test_networks" ;;
    handle) step handle 90 "$from/tests/gpu_test_gpu_handle" ;;
    processes) train_processes ;;
    hidden-*) train_large "${1#hidden-}" ;;
    memcheck) sanitize memcheck trees ;;
    racecheck | synccheck | initcheck) sanitize "$1" dropout ;;
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
clocks=
trap '[ -z "$clocks" ] || kill "$clocks" 2> /dev/null; rm -rf "$work"' EXIT
from=$build
id=$(commit)
if [ -f "$prepared/sources" ] && [ "$(cat "$prepared/sources")" = "$(sum_of_sources)" ]; then
    from=$prepared
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
for name in "${order[@]}"; do rm -f "$out/$name.out" "$out/$name.err"; done # of an earlier run
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
    if [[ " ${wanted[*]} " == *" $name "* ]]; then run_step "$name"; fi
done
echo "$out/check.json: $failed failed"
[ "$failed" -eq 0 ]
