#!/bin/bash
# test_tune.sh - `vpps tune --device cpu`: products and stages are measured, told, kept in the cache, and found there by training.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"
export VPPS_CACHE_DIR=$work/cache

common=(tree-lstm --hidden 24 --embed 24 --examples 40 --batch 8 --device cpu --vps 2)
train=("$vpps" train "${common[@]}" --max-batches 2 --eval-every 0)
lacks() { ! grep -qF -e "$2" "$1"; } # lacks FILE TEXT
note="products as vpps tune has measured them"

check "training without" exits 0 "${train[@]}"
check "nothing was measured" lacks err "$note"
check "tune" exits 0 "$vpps" tune "${common[@]}"
check "it tells ways forward" says out "forward, so many vectors at a time"
check "and backward" says out "backward, a transposed copy"
check "what a copy costs" says out "making the copy"
check "how stages are shared out" says out "stages shared by vertices"
check "what is chosen" says out "chosen"
check "what is not kept" says out "train with --groups"
check "it is in the cache" exits 0 "$vpps" cache list
check "by its name" says out "products of the CPU"

check "tune again" exits 0 "$vpps" tune "${common[@]}"
check "it is remembered" says out "chosen by an earlier run"
check "--json" exits 0 "$vpps" tune "${common[@]}" --json
check "its products" json out "{p['product'] for p in o['products']} == {'tile', 'rows', 'copy', 'transpose'} and \
all(p['ns_per_vector'] > 0 and p['rows'] > 0 and p['cols'] > 0 for p in o['products']) and \
any(p['state'] == 'remembered' for p in o['products'])"
check "its splits" json out "[s['split'] for s in o['splits']] == ['size', 'rows', 'vertices'] and \
[s['state'] for s in o['splits']].count('remembered') == 1 and o['done']"

check "training with" exits 0 "${train[@]}"
check "it says so" says err "$note"
check "--no-tuning" exits 0 "${train[@]}" --no-tuning
check "it is as without" lacks err "$note"
check "another model" exits 0 "${train[@]}" --hidden 40
check "has other products" lacks err "$note"

truncate -s -4 "$work"/cache/*.vpps
check "a damaged file" exits 0 "${train[@]}"
check "is none" lacks err "$note"
check "and is measured anew" exits 0 "$vpps" tune "${common[@]}" --json
check "this time" json out "any(p['state'] == 'current' for p in o['products'])"
check "without a cache" exits 0 env VPPS_CACHE_DIR=/dev/null/nowhere "$vpps" tune "${common[@]}"
check "it says that nothing is kept" says err "could not be kept"
summary
