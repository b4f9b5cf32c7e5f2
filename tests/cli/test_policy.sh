#!/bin/bash
# test_policy.sh - --policy: what is learned and kept, training by each policy.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"
export VPPS_CACHE_DIR=$work/cache

small=(--hidden 8 --embed 8)
# The policies as the help has them: a|b|c, and as a list of Python's.
policies=$("$vpps" train tree-lstm --help-engine | sed -n 's/.*--policy=default|\([a-z|]*\)|auto.*/\1/p')
check "the help has the policies" grep -qE '^depth\|.*fsm' <<<"$policies"
names="'$policies'.split('|')"
for policy in ${policies//|/ } auto; do
    check "train --policy $policy" exits 0 "$vpps" train lattice-lstm "${small[@]}" --examples 60 --batch 20 --epochs 2 --policy "$policy" --verify --json
    check "it learns" json out "o['loss'] > 0 and o['policy'] in $names"
    [ "$policy" = auto ] || check "by $policy" json out "o['policy'] == '$policy' and o['steps_per_batch'] > 3"
done
check "what was learned is kept" shows out "policy" "$vpps" cache list
check "train on software SIMT" exits 0 "$vpps" train tree-lstm-2type "${small[@]}" --examples 10 --max-batches 1 --eval-every 0 --device simt --vps 2 --json
check "its default policy is depth" json out "o['policy'] == 'depth'"
check "another policy" fails_with 2 "$policies|auto" "$vpps" train tree-lstm --policy widest
tuned() {
    exits 0 "$vpps" tune lattice-lstm "${small[@]}" --examples 60 --batch 20 --device cpu --vps 1 --json || return 1
    json out "o['done'] and [t['policy'] for t in o['trials'] if 'policy' in t] == $names and \
all(t['batches'] == 9 for t in o['trials'] if 'policy' in t)" || return 1
    exits 0 "$vpps" tune lattice-lstm "${small[@]}" --examples 60 --batch 20 --device cpu --vps 2 && says out "train with --groups"
    says out " --policy "
}
check "tune on the cpu measures policies" tuned
summary
