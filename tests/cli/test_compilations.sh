#!/bin/bash
# test_compilations.sh - how often a kernel is compiled while a network trains on a GPU: the driver is tests/fake_cuda, which runs
# nothing, and the compiler tests/fake_nvrtc, which counts. VPPS names the program (default: build/vpps).

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"

tests=$(dirname "$vpps")/tests
mkdir fake && cp "$tests/fake_nvrtc.so" fake/libnvrtc.so.13 || exit 1
export VPPS_LIBCUDA=$tests/fake_cuda.so VPPS_NVRTC=$work/fake/libnvrtc.so.13 VPPS_FAKE_NVRTC_LOG=$work/compiled

# Trees of one word, of two and of more: alone in a batch, each kind is read, and reads, differently.
long='(3 (2 (2 a) (1 b)) (4 (3 c) (0 d)))' short='(1 (0 a) (2 d))' word='(2 c)'
printf '%s\n' "$long" "$short" "$word" "$long" "$word" "$short" >mixed.txt
printf '%s\n' "$long" >long.txt

# trains OPTION...: its kernels are in kernels, a line each, and all of them were compiled. With more than one core the kernel for
# inference is compiled beside training, and found in the cache.
trains() {
    rm -rf cache compiled
    exits 0 env VPPS_CACHE_DIR="$work/cache" "$vpps" train tree-lstm --device cuda --hidden 64 --embed 64 --dev long.txt \
        --no-tuning --verify "$@" || return
    cat out err | grep '^kernel of ' >kernels
    [ "$(wc -l <compiled)" -ge "$(wc -l <kernels)" ] || { echo "compiled:"; cat compiled kernels; return 1; }
}

waited_for() { grep -vc 'from the cache' kernels; }

# at_most N: as many kernels for training, and one for inference, of the leaf's cell and the inner one's at most. For each of the first one of
# the other kind may be compiled ahead.
at_most() {
    local kernels=$1
    [ "$(nproc)" -gt 1 ] || kernels=$(($1 + 1))
    if [ "$(wc -l <kernels)" -gt "$(($1 + 1))" ] || [ "$(waited_for)" -gt "$kernels" ] || [ "$(wc -l <compiled)" -gt "$((2 * $1))" ] ||
        grep -qvE '^kernel of [12] cells, ' kernels; then
        cat kernels
        return 1
    fi
}

all_kinds() { trains --train long.txt --batch 1 --epochs 2 && at_most 1; }
check "one kernel trains, one infers" all_kinds
for seed in 1 2 3 4 5 6; do
    # The widest use of a cell comes after two others at worst, and from then on no batch needs another one.
    mixed() { trains --train mixed.txt --batch 1 --epochs 4 --seed "$seed" && at_most 3; }
    check "kinds of trees one after the other, seed $seed" mixed
done
for _ in $(seq 37); do printf '%s\n' "$long"; done >many.txt
last_batches() { trains --train many.txt --dev many.txt --batch 16 --epochs 2 && at_most 1 && ! grep -v 'in groups of 33,' kernels; }
check "the last batch, of fewer trees, takes the others' kernel" last_batches
from_the_cache() {
    trains --train mixed.txt --batch 1 --epochs 2 || return
    local n lines
    n=$(wc -l <compiled) lines=$(wc -l <kernels)
    exits 0 env VPPS_CACHE_DIR="$work/cache" "$vpps" train tree-lstm --device cuda --hidden 64 --embed 64 --dev long.txt \
        --no-tuning --train mixed.txt --batch 1 --epochs 2 && [ "$(wc -l <compiled)" -eq "$n" ] &&
        [ "$(cat out err | grep -c 'CUBIN of .*from the cache')" -eq "$lines" ]
}
check "a second run compiles nothing" from_the_cache

report=(env "VPPS_CACHE_DIR=$work/own" "$vpps" kernel tree-lstm --arch sm_90 --sms 132 --report --json)
is_cached() { tells "o['kernels'][0]['cached'] == $1" "${report[@]}" "${@:2}"; }
uncached() { is_cached False && is_cached True && is_cached False --no-cache; }
check "kernel --report --no-cache" uncached

summary
