#!/usr/bin/env bash
# Other processors and another compiler: the program built for 64-bit ARM, and the one for x86 on processors without AVX-512 and
# without AVX2, run under QEMU's user mode and train to this machine's losses; what clang builds trains to the same bits as what gcc
# builds. Exported C is built in four ways, or in VPPS_TEST_PART's share of them (tools/share.sh). BUILD, VPPS and MAKE as in the Makefile.
# The last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/share.sh
build=${BUILD:-build} vpps=${VPPS:-build/vpps} make=${MAKE:-make}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export VPPS_CACHE_DIR=$work/cache VPPS_TEST_SCALE=small CK_TIMEOUT_MULTIPLIER=10
passed=0 failed=0 skipped=0

# check WHAT COMMAND...: the command succeeds.
check() {
    if "${@:2}" > "$work/output" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n%s\n' "$1" "$(tail -n 20 "$work/output")"
    fi
}

# built SUFFIX CC TESTS...: the command and these tests by that compiler, in the build folder with that suffix.
built() {
    local folder=$build-$1 cc=$2
    shift 2
    "$make" --no-print-directory -j"$(nproc)" BUILD="$folder" CC="$cc" CFLAGS=-O2 "$folder/vpps" "${@/#/$folder/tests/}"
}

# trained NAME UNIT COMMAND...: trains a Tree-LSTM, by that unit, to $work/NAME and $work/NAME.log.
trained() {
    local name=$1 unit=$2
    shift 2
    "$@" train tree-lstm --device cpu --no-tuning --examples 40 --batch 8 --max-batches 5 --eval-every 0 --hidden 52 --embed 36 --vps 2 \
        --seed 3 --watchdog-ms 60000 --quiet --save "$work/$name" --log "$work/$name.log" && grep -q "\"precision_unit\":\"$unit\"" "$work/$name.log"
}

# same_losses A B: batch by batch, but for rounding.
same_losses() {
    python3 - "$work/$1.log" "$work/$2.log" << 'END'
import json, sys
a, b = ([r["loss"] for r in map(json.loads, open(path)) if r["event"] == "batch"] for path in sys.argv[1:])
print(a, b)
sys.exit(len(a) != 5 or len(b) != 5 or any(not abs(x - y) <= 1e-5 * abs(x) for x, y in zip(a, b)))
END
}

same_bits() { cmp "$work/$1" "$work/$2"; }

kernel_tests=(runtime_test_kernels runtime_test_products runtime_test_bf16 codegen_test_instructions)

# kernels_of COMMAND... TEST: of tests that have a GPU's kernels, too, those of the CPU alone.
kernels_of() { case ${!#} in *_instructions) CK_RUN_CASE=cpu "$@" ;; *) "$@" ;; esac; }
for isa in generic avx2; do # what this processor may lack is left out there
    check "training by $isa" trained "$isa" "$isa" env VPPS_ISA=$isa "$vpps"
done

check "building for ARM" built arm64 aarch64-linux-gnu-gcc "${kernel_tests[@]}"
arm=(qemu-aarch64-static)
for test in "${kernel_tests[@]}"; do check "$test on ARM" kernels_of "${arm[@]}" "$build-arm64/tests/$test"; done
check "training on ARM" trained neon neon "${arm[@]}" "$build-arm64/vpps"
check "its losses" same_losses generic neon

check "training on a processor without AVX-512" trained haswell avx2 qemu-x86_64-static -cpu Haswell "$vpps"
check "its bits" same_bits avx2 haswell
check "training on a processor without AVX2" trained nehalem generic qemu-x86_64-static -cpu Nehalem "$vpps"
check "its bits" same_bits generic nehalem

check "building by clang" built clang clang "${kernel_tests[@]}"
for test in "${kernel_tests[@]}"; do check "$test by clang" kernels_of "$build-clang/tests/$test"; done
tools/digests.py --no-scripts --vpps "$vpps" > "$work/gcc"
check "bits of all networks by clang" diff "$work/gcc" <(tools/digests.py --no-scripts --vpps "$build-clang/vpps")

# Exported C by both compilers, under the sanitizers, and on ARM. Each of up to eight shares has a build.
export VPPS_EXPORT_BUILDS=
builds=("gcc -O3 -march=native|" "aarch64-linux-gnu-gcc -O2 -static|qemu-aarch64-static"
    "clang -O1 -fsanitize=address,undefined -fno-sanitize-recover=all|" "clang -O2|")
for i in "${!builds[@]}"; do
    if share "$i" || share $((i + ${#builds[@]})); then VPPS_EXPORT_BUILDS+=${VPPS_EXPORT_BUILDS:+;}${builds[i]}; else skipped=$((skipped + 1)); fi
done
check "building the tests of exported C" "$make" --no-print-directory -j"$(nproc)" "$build/tests/export_test_export"
BUILD="$build" VPPS="$vpps" tests/cli/test_export_c.sh > "$work/programs" 2>&1 &
programs=$!
finished() { wait "$1" || { cat "$2" && false; }; }
check "exported cells" "$build/tests/export_test_export"
check "exported programs" finished "$programs" "$work/programs"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
