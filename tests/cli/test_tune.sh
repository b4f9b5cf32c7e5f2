#!/bin/bash
# test_tune.sh - what is measured on a CPU, told, kept in the cache, and found there: products by the first run, how stages are shared
# out by `vpps tune --device cpu`.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"
unset VPPS_ISA # which would leave nothing to choose
export VPPS_CACHE_DIR=$work/cache

shape=(tree-lstm --hidden 24 --embed 24 --examples 40 --batch 8 --vps 2)
common=("${shape[@]}" --device cpu)
train=("$vpps" train "${common[@]}" --max-batches 2 --eval-every 0)
lacks() { ! grep -qF -e "$2" "$1"; } # lacks FILE TEXT
products="as measured on this processor"
stages="as vpps tune has measured"

check "no time to measure" exits 0 env VPPS_CACHE_DIR="$work/other" VPPS_PROBE_MS=0 "${train[@]}"
check "is told" grep -q "products were not measured" err
check "--no-tuning" exits 0 "${train[@]}" --no-tuning
check "measures nothing" lacks err "$products"
check "and keeps nothing" test ! -e "$VPPS_CACHE_DIR"
check "--portable" exits 0 "${train[@]}" --portable
check "neither" test ! -e "$VPPS_CACHE_DIR"
check "the first run" shows err "$products" "${train[@]}" --save "$work/first"
check "the second" exits 0 "${train[@]}" --save "$work/second"
check "does not" lacks err "$products"
check "and has the same bits" cmp "$work/first" "$work/second"
check "they are in the cache" shows out "products of this processor" "$vpps" cache list
check "doctor tells them what is taken" tells "{p['precision'] for p in o['products'] if p['taken']} == {'fp32', 'bf16', 'bf16x3'} and \
all(p['gflops_one'] > 0 and p['gflops_many'] > 0 and p['gflops_one_far'] > 0 for p in o['products'])" "$vpps" doctor --json

check "tune" shows out "stages shared by vertices" "$vpps" tune "${common[@]}"
check "what is chosen" says out "  chosen"
check "what is not kept" says out "train with --groups"
check "it is in the cache" shows out "how a CPU's stages are shared out" "$vpps" cache list

check "tune where no GPU is" shows err "using the cpu: cuda: " env VPPS_LIBCUDA=/nowhere "$vpps" tune "${shape[@]}"
check "tune again: its products" tells "{p['product'] for p in o['products']} == {'forward', 'rows', 'gradient', 'copy'} and \
all(p['ns_per_vector'] > 0 and p['unit'] and p['precision'] for p in o['products']) and \
any(p['state'] == 'remembered' for p in o['products'])" "$vpps" tune "${common[@]}" --json
check "its groups" json out "[t['groups'] for t in o['trials'] if 'groups' in t] == [1, 2] and \
all(t['ns_per_node'] > 0 for t in o['trials']) and [t['state'] for t in o['trials'] if 'groups' in t].count('current') == 1"
check "its splits" json out "[s['split'] for s in o['splits']] == ['size', 'rows', 'vertices'] and \
[s['state'] for s in o['splits']].count('remembered') == 1 and o['done']"

check "training with" shows err "$stages" "${train[@]}"
check "--no-tuning" exits 0 "${train[@]}" --no-tuning
check "it is as without" lacks err "$stages"
check "another model" exits 0 "${train[@]}" --hidden 40
check "has other stages" lacks err "$stages"

truncate -s -4 "$work"/cache/*.vpps
check "damaged files" exits 0 "${train[@]}"
check "are none: of stages" lacks err "$stages"
check "of products" says err "$products"
check "and stages are tried anew" tells "any(s['state'] == 'current' for s in o['splits'])" "$vpps" tune "${common[@]}" --json
check "without a cache" shows err "could not be kept" env VPPS_CACHE_DIR=/dev/null/nowhere "$vpps" tune "${common[@]}"
summary
