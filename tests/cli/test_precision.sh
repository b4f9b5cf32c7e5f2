#!/bin/bash
# test_precision.sh - --precision: what runs in it, what says so, and that checkpoints do not depend on it. VPPS names the program
# (default: build/vpps).

# shellcheck source=tests/cli/common.sh
. "$(dirname "$0")/common.sh"

train=("$vpps" train tree-lstm --generate listops --examples 60 --hidden 24 --batch 10 --vps 2)

differ() { ! same_tensors "$1" "$2" 2>/dev/null; }

unset VPPS_ISA
in_each() { # PRECISION
    exits 0 "${train[@]}" --epochs 2 --precision "$1" --save "$1.ckpt" --log "$1.jsonl" --json --verify &&
        json out "o['precision'] == '$1' and o['precision_unit'] in ('generic', 'avx2', 'avx512', 'neon', 'amx', 'avx512bf16')" &&
        json "$1.jsonl" "o['precision'] == '$1'"
}
for precision in fp32 bf16x3 bf16; do
    check "train in $precision" in_each $precision
done
check "the log says it" says err "products in bf16 ("
check "fp32 is the default" exits 0 "${train[@]}" --epochs 2 --save plain.ckpt
check "fp32 is the default: the same tensors" same_tensors plain.ckpt fp32.ckpt
check "bf16x3 is not fp32" differ fp32.ckpt bf16x3.ckpt
check "bf16 is not bf16x3" differ bf16.ckpt bf16x3.ckpt

in_another() {
    exits 0 "$vpps" eval --model bf16.ckpt --precision fp32 --json && json out "o['precision'] == 'fp32'" &&
        exits 0 "$vpps" eval --model fp32.ckpt --precision bf16 --json && json out "o['precision'] == 'bf16'" &&
        exits 0 "$vpps" train --resume bf16.ckpt --epochs 3 --precision fp32 --json && json out "o['precision'] == 'fp32'"
}
check "a checkpoint of one precision is used and trained in another" in_another

chooses() {
    exits 0 "${train[@]}" --epochs 0 --precision auto --json && json out "o['precision'] in ('fp32', 'bf16x3')" &&
        says err "multiplying in"
}
check "auto says what it takes" chooses
by_table() { # without measuring: with AMX, where neither batches nor matrices are small
    local wide=("${train[@]}" --hidden 128 --embed 128)
    local amx=fp32
    exits 0 "$vpps" doctor --json && json out "o['processor']['amx'] == 'ready'" && amx=bf16x3
    exits 0 "${wide[@]}" --epochs 0 --precision auto --no-tuning --json && json out "o['precision'] == '$amx'" &&
        says err "unless measured otherwise" &&
        exits 0 "${wide[@]}" --batch 1 --epochs 0 --precision auto --no-tuning --json && json out "o['precision'] == 'fp32'" &&
        exits 0 "${train[@]}" --epochs 0 --precision auto --no-tuning --json && json out "o['precision'] == 'fp32'" &&
        says err "fewer than 96 rows or columns"
}
check "auto by the table" by_table
plain() {
    exits 0 "${train[@]}" --epochs 0 --precision auto --portable --json && json out "o['precision'] == 'fp32'"
}
check "auto in plain C is fp32" plain
by_name() { # without measuring AVX512-BF16 makes products only where it is asked for, and there is any
    exits 0 "$vpps" doctor --json || return 1
    local here=False
    json out "'avx512bf16' in o['processor']['features']" && here=True
    exits 0 "${train[@]}" --epochs 1 --precision bf16 --no-tuning --json &&
        json out "o['precision_unit'] != 'avx512bf16'" &&
        VPPS_ISA=avx512bf16 exits 0 "${train[@]}" --epochs 1 --precision bf16 --json &&
        json out "(o['precision_unit'] == 'avx512bf16') == $here" &&
        VPPS_ISA=avx512bf16 exits 0 "${train[@]}" --epochs 0 --precision bf16 --portable --json &&
        json out "o['precision_unit'] == 'generic'"
}
check "AVX512-BF16 is asked for by name" by_name
on_gpu() { # the GPU's kernel, by software SIMT, which takes its time by the examples that are measured and the threads of a CTA
    local gpu=(--device simt --eval-every 0 --rpw 1 --threads 64) none=("$vpps" train tree-lstm --generate listops --examples 10 --hidden 24 --epochs 0)
    exits 0 env VPPS_SIMT_SMS=4 "${train[@]}" "${gpu[@]}" --max-batches 1 --precision bf16 --json &&
        json out "o['precision'] == 'bf16' and o['precision_unit'] == 'mma'" &&
        exits 0 "${none[@]}" "${gpu[@]}" --precision auto &&
        says err "multiplying in bf16x3: it is faster than fp32" &&
        exits 0 "${none[@]}" "${gpu[@]}" --precision auto --batch 2 &&
        says err "multiplying in fp32: it is faster than bf16x3 with batches of so few examples"
}
check "the GPU's kernel has it" on_gpu
planned() {
    exits 0 "$vpps" plan tree-lstm --generate listops --precision bf16x3 --arch sm_80 --json &&
        json out "o['plans'][0]['precision'] == 'bf16x3' and o['plans'][0]['fragments']" &&
        exits 0 "$vpps" plan tree-lstm --generate listops --precision bf16x3 --arch sm_80 && says out "products       in bf16x3" &&
        exits 0 "$vpps" kernel tree-lstm --generate listops --precision bf16 --arch sm_80 && says out "#define VPPS_PARTS 1u"
}
check "vpps plan and vpps kernel show it" planned
check "GPUs before sm_80 refuse" fails_with 1 "a GPU of sm_75 does not multiply in bf16x3" "$vpps" plan tree-lstm --generate listops --precision bf16x3 --arch sm_75
check "an unknown precision" fails_with 2 "--precision: 'fp8' is not one of fp32|bf16x3|bf16|auto" "${train[@]}" --precision fp8
shows() {
    exits 0 "$vpps" cell tree-lstm --generate listops --precision bf16x3 &&
        says out "products with matrices in bf16x3 (" &&
        exits 0 "$vpps" cell tree-lstm --generate listops --precision bf16 --json && json out "o['precision'] == 'bf16'"
}
check "vpps cell shows it" shows

summary
