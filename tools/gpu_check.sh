#!/usr/bin/env bash
# Checks VPPS on this machine's NVIDIA GPU and writes what came out as one JSON file. Without a GPU it says so in a line,
# checks nothing, writes nothing and succeeds.
#
#     tools/gpu_check.sh             make gpu-check: check
#     tools/gpu_check.sh prepare     make gpu-prepare: programs for a machine that can neither build nor download
#
# The check needs the driver, NVRTC, and three programs: the command, tests/gpu/test_gpu_agreement.c and
# bench/bench_gpu.c. It takes them from build-gpu/ when `prepare` made them there from the very same sources, else it
# builds them (make, a C compiler and the packages of `tools/setup.sh build test`). What `prepare` makes needs nothing but
# glibc, no older than here: the other libraries are linked in. build-gpu/ is to be copied along with the sources.
#
# Steps, each of which may fail without stopping the next:
#     agreement   the GPU's results against the CPU device's
#     train       a small training run by the command
#     memcheck    agreement on small cases under compute-sanitizer; skipped where it is not installed
#     racecheck   the same for hazards in shared memory
#     bench       bench_gpu; its lines are JSON objects
#
# The file is OUT/check.json, OUT being bench/results/NAME-OF-THE-GPU unless set: machine, commit, date, each step's
# command, exit status (null: skipped), seconds and last lines, and the benchmark's objects.
set -euo pipefail
cd "$(dirname "$0")/.."

make=${MAKE:-make}
build=${BUILD:-build}
prepared="build-gpu"
programs=(vpps tests/gpu_test_gpu_agreement tests/models_test_networks bench/bench_gpu)

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

# NAME COMMAND STATUS SECONDS LAST-LINES, as JSON but for the first two.
add_step() {
    steps+="${steps:+,}"$'\n'"    {\"step\": \"$1\", \"command\": $(json_string <<< "$2"), \"exit_status\": $3, "
    steps+="\"seconds\": $4, \"last_lines\": $5}"
}

# NAME SECONDS-ALLOWED COMMAND...; standard output stays in $work/NAME.out.
step() {
    local name=$1 limit=$2 status=0 start ms
    shift 2
    start=$(date +%s%N)
    timeout --kill-after=10 "$limit" "$@" > "$work/$name.out" 2> "$work/$name.err" < /dev/null || status=$?
    ms=$((($(date +%s%N) - start) / 1000000))
    tail -q -n 20 "$work/$name.out" "$work/$name.err" > "$work/$name.tail"
    add_step "$name" "$*" "$status" "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" \
        "$(json_string < "$work/$name.tail")"
    if [ "$status" -eq 0 ]; then
        printf 'ok      %-10s %4d s\n' "$name" $((ms / 1000))
    else
        failed=$((failed + 1))
        printf 'FAILED  %-10s %4d s  exit status %d\n' "$name" $((ms / 1000)) "$status"
        sed 's/^/    /' "$work/$name.tail"
    fi
}

skip() {
    add_step "$1" "" null 0 "$(json_string <<< "skipped: $2")"
    printf 'skipped %-10s %s\n' "$1" "$2"
}

# compute-sanitizer's program; fails without.
find_sanitizer() {
    local path
    for path in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer}/compute-sanitizer; do
        command -v "$path" && return
    done
    return 1
}

# ---------------------------------------------------------------- check

case ${1:-} in
prepare) prepare; exit ;;
"") ;;
*) echo "gpu_check: unknown argument '$1' (prepare, or none)" >&2; exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
export VPPS_CACHE_DIR=$work/cache # kernels are compiled anew
export VPPS_TEST_DEVICE=cuda CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-120}
agreement=$from/tests/gpu_test_gpu_agreement

step agreement 600 "$agreement"
step networks 600 "$from/tests/models_test_networks"
step train 300 "$from/vpps" train tree-lstm --device cuda --generate listops --examples 1000 --epochs 1 --quiet --json
if sanitizer=$(find_sanitizer); then
    # One process: its children would each start the GPU again.
    for tool in memcheck racecheck; do
        step "$tool" 900 env VPPS_TEST_SCALE=small CK_FORK=no CK_TIMEOUT_MULTIPLIER=20 \
            "$sanitizer" --tool "$tool" --error-exitcode 99 "$agreement"
    done
else
    skip memcheck "compute-sanitizer is not installed"
    skip racecheck "compute-sanitizer is not installed"
fi
step bench 900 "$from/bench/bench_gpu"
objects=$(grep '^{' "$work/bench.out" | sed 's/^/    /; $!s/$/,/' || true)

mkdir -p "$out"
cat > "$out/check.json" << JSON
{
  "date": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
  "commit": "$id",
  "gpu": $(printf '%s' "$gpu" | json_string),
  "nvidia_smi": $({ nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit,persistence_mode \
      --format=csv,noheader 2> /dev/null || true; } | json_string),
  "machine": $machine,
  "steps": [$steps
  ],
  "bench": [
$objects
  ]
}
JSON
echo "$out/check.json: $failed failed"
[ "$failed" -eq 0 ]
