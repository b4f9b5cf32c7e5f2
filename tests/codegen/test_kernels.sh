#!/bin/bash
# test_kernels.sh - kernels of real networks, compiled by NVRTC, which needs no GPU: none has a frame, so none spills, and each fits
# its GPU. What a kernel computes is not looked at here. VPPS names the program (default: build/vpps).
#
# Everyday: a Tree-LSTM for sm_90, in fp32. VPPS_TEST_KERNELS=networks: also for the oldest and the newest architecture; a larger
# Tree-LSTM in each precision; and every network at its own sizes for sm_90, in fp32 and in bf16x3 by turns, which are the other way round in
# tools/check_gpu_model.sh. VPPS_TEST_PART: only a share of the larger Tree-LSTMs and of the networks. With VPPS_TEST_SCALE=full: a Tree-LSTM for
# every architecture, larger ones and every network, in each precision. VPPS_TEST_ARCH=all, too, which takes an hour: the larger ones for
# every architecture, and matrices beyond the registers. Without
# NVRTC a line says so.

# shellcheck source=SCRIPTDIR/../../tools/share.sh
source "$(dirname "$0")/../../tools/share.sh"
# shellcheck source=SCRIPTDIR/../cli/common.sh
source "$(dirname "$0")/../cli/common.sh"

# ---------------------------------------------------------------- what a kernel must be

# kernel NAME EXPRESSION NETWORK OPTION...: compiles, two at a time; what is said of the kernels goes to NAME.json, a failure to NAME.err.
# check_kernels checks that all of them are clean, and their expressions.
declare -A expressions
kernel() {
    expressions[$1]=$2
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    "$vpps" kernel "${@:3}" --report --json >"$1.json" 2>"$1.err" &
}
check_kernels() {
    wait
    for name in "${!expressions[@]}"; do
        if [[ $name == sm_*-* ]] && grep -q "does not compile for" "$name.err"; then continue; fi
        check "$name" clean "$name" "${expressions[$name]}"
    done
}

# clean NAME [EXPRESSION]: every kernel of NAME.json is clean, and the Python expression is true of each, k, whose matrices are at
# the levels `levels`. Registers are given out by 8 to a thread (CUDA C++ Programming Guide, "Technical Specifications per
# Compute Capability", which also has the shared memory of a CTA).
clean() {
    python3 - "$@" <<'PY'
import json, sys
name, expression = sys.argv[1], (sys.argv + ['True'])[2]
shared_kib = {75: 64, 80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99}
lines = open(name + '.json').read().splitlines()
assert lines, open(name + '.err').read()
kernels = json.loads(lines[-1])['kernels']
assert kernels
for k in kernels:
    assert 'error' not in k, k
    levels = {m['level'] for m in k['matrices']}
    weights = sum(m['words_of_thread'] for m in k.get('fragments', k['matrices']) if m.get('level') == 'registers')
    assert ('fragments' in k) == (k['precision'] != 'fp32') == (k['precision'] in k['description']), k
    assert k['frame_bytes'] == 0, k
    assert weights == k['registers'] < k['kernel_registers'] <= 255, k # weights are where the plan says
    assert -(-k['kernel_registers'] // 8) * 8 * k['threads'] <= 65536, k
    assert sum(k[part] for part in ('shared_bytes', 'tile_bytes', 'script_bytes', 'late_bytes')) == k['dynamic_shared_bytes'], k
    assert k['static_shared_bytes'] + k['dynamic_shared_bytes'] <= shared_kib[int(k['arch'][3:])] * 1024, k
    assert all(line.startswith('rejected: ') for line in k['rejected']), k
    assert eval(expression), (expression, k)
PY
}

# list_networks: into networks.
list_networks() {
    read -r -a networks <<<"$("$vpps" help | sed -n '/^Networks:/,/^$/s/^  \([a-z][a-z0-9-]*\).*/\1/p' | tr '\n' ' ')"
    check "networks are listed" test ${#networks[@]} -gt 0
}

# A GPU has 64 KiB of constant memory: 16384 numbers.
numbers() { "$vpps" kernel tree-lstm --hidden 2048 --embed 2048 | grep __constant__ | tr -cd , | wc -c; }
check "tables of large matrices fit constant memory" test "$(numbers)" -lt 16384

# Loops compute many rows of a matrix, so the code for 5200 classes has no more calls than the code for 4400. calls PRECISION CLASSES: prints how
# many calls of functions that compute products the kernel of a language model has. Fails if `vpps kernel` fails or there is no such call.
calls() {
    local text
    seq "$2" | paste -sd '   \n' >words.txt
    text=$("$vpps" kernel lstm-lm --train words.txt --dev words.txt --min-count 1 --hidden 50 --embed 50 --batch 1 --sms 4 --groups 1 --precision "$1") &&
        grep -cE '^vpps_(wide_pass|tile_pass|unit_sums|strip_sums|fragment_load)<' <<<"$text"
}
no_more_calls() {
    local many few
    many=$(calls "$1" 5200) && few=$(calls "$1" 4400) && test "$many" -le "$few"
}
for precision in fp32 bf16x3; do
    check "$precision: no more code for more classes" no_more_calls $precision
done

# ---------------------------------------------------------------- architectures

fails_with 1 "these are: " "$vpps" kernel tree-lstm --hidden 8 --report --arch none >/dev/null
read -r -a architectures <<<"$(sed -n '/these are: /{s/.*these are: //; s/,//g; p}' err)"
check "sm_90 is among the architectures" test "$(printf '%s\n' "${architectures[@]}" | grep -cx sm_90)" -eq 1

small=(tree-lstm --hidden 64 --embed 64)
every=${VPPS_TEST_ARCH:-} # "all", or nothing
# knows ARCHITECTURE: the compiler does; then its kernel is compiled, or the failure is another.
knows() {
    "$vpps" kernel "${small[@]}" --report --json --arch "$1" >"$1.json" 2>"$1.err" && return 0
    ! grep -q "does not compile for" "$1.err"
}

# Stages without values of list members take more than eight vertices at a time: all but two of a transformer's.
check "stages without lists" test "$("$vpps" kernel transformer-tagger --hidden 16 --examples 20 --arch sm_90 2>err | grep -c '^vpps_tiles<8>')" -eq 2

check "without NVRTC, that is the reason" fails_with 1 "NVRTC: /nowhere/libnvrtc.so" \
    env VPPS_NVRTC=/nowhere/libnvrtc.so "$vpps" kernel "${small[@]}" --report --json --arch sm_90

if ! knows sm_90 || grep -q VPPS_NVRTC sm_90.err; then
    skip "kernels" "$(head -n 1 sm_90.err)" 3
    summary
    exit
fi
check "sm_90" clean sm_90
check "before sm_80, bf16 is refused" fails_with 1 "a GPU of sm_75 does not multiply in bf16" \
    "$vpps" kernel "${small[@]}" --precision bf16 --report --arch sm_75

in_registers="'registers' in levels" # a matrix, at least
large() { # large SUFFIX EXPRESSION HIDDEN OPTION...: a larger Tree-LSTM
    kernel "$3-$1" "$2" tree-lstm --hidden "$3" --embed "$3" "${@:4}"
}

if [ "${VPPS_TEST_SCALE:-}" = full ]; then
    list_networks
    kernel all-64 "$in_registers" "${small[@]}" --optimizer adam --arch all
    for hidden in 256 512; do
        for optimizer in sgd adam; do large $optimizer "$in_registers" $hidden --optimizer $optimizer --arch "${every:-sm_90}"; done
    done
    for network in "${networks[@]}"; do kernel "$network" True "$network" --arch sm_90; done
    read -r -a with_mma <<<"$(printf '%s\n' "${architectures[@]}" | awk -F_ '$2 >= 80' | tr '\n' ' ')"
    for precision in bf16x3 bf16; do
        is="k['precision'] == '$precision'"
        for arch in "${with_mma[@]}"; do kernel "$arch-$precision" "$is" "${small[@]}" --precision $precision --arch "$arch"; done
        for hidden in 256 512; do large $precision "$is" $hidden --precision $precision --arch sm_90; done
        for network in "${networks[@]}"; do kernel "$network-$precision" "$is" "$network" --precision $precision --arch sm_90; done
    done
    for hidden in ${every:+1024 2048}; do large large "levels == {'registers', 'shared', 'stream'}" "$hidden" --arch sm_90; done
elif [ "${VPPS_TEST_KERNELS:-}" = networks ]; then
    # The first that the compiler knows, from either end.
    for ((i = 0; i < ${#architectures[@]}; i++)); do knows "${architectures[i]}" && break; done
    check "${architectures[i]}, the oldest" clean "${architectures[i]}"
    for ((i = ${#architectures[@]} - 1; i >= 0; i--)); do knows "${architectures[i]}" && break; done
    check "${architectures[i]}, the newest" clean "${architectures[i]}"
    list_networks
    turns=(fp32 bf16x3)
    for ((i = 0; i < ${#networks[@]}; i++)); do
        if share $((i / 2)); then
            kernel "${networks[i]}" "k['precision'] == '${turns[i % 2]}'" "${networks[i]}" --precision "${turns[i % 2]}" --arch sm_90
        else
            skip "${networks[i]}" "VPPS_TEST_PART leaves it out"
        fi
    done
    turns=(fp32 bf16x3 bf16)
    for ((i = 0; i < ${#turns[@]}; i++)); do
        if share "$i"; then
            large "${turns[i]}" "k['precision'] == '${turns[i]}'" 256 --precision "${turns[i]}" --arch sm_90
        else
            skip "256-${turns[i]}" "VPPS_TEST_PART leaves it out"
        fi
    done
fi
if [ "${VPPS_TEST_SCALE:-}" = full ] || [ "${VPPS_TEST_KERNELS:-}" = networks ]; then
    kernel few-sms "levels > {'registers'}" bilstm-tagger --hidden 20 --embed 20 --sms 4 --arch sm_90 # a VP has many rows
    check_kernels
fi
[ "${VPPS_TEST_SCALE:-}" != full ] || check "all-64 is of several architectures" json all-64.json "len({k['arch'] for k in o['kernels']}) >= 2"

summary
